// SPDX-License-Identifier: Apache-2.0
// libkshim-audit.so: what LD_AUDIT loads (rtld-audit(7)) where a preload is not enough. The dynamic linker
// asks it about every call that it binds; one that is bound past libkshim.so, because the caller was loaded
// with RTLD_DEEPBIND, is led to libkshim.so after all. It lives in a namespace of its own with a C library of
// its own, calls nothing of either, and does nothing but compare names.
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

#if !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")  // no loop becomes a call of libc's
#endif

namespace {

/// The kind of an object; stored in the cookie that the linker passes back.
enum Kind : std::uintptr_t { other, shim, c_library, driver, runtime11, runtime12, runtime13 };

struct Definition {
  const char* name;
  const char* version;  // the shim's own node for it: libcudart.so.13, KSHIM_1, GLIBC_2.34
  std::uintptr_t address;
};
// As many as hooks.def has rows for three runtimes and some; more are left unbound.
constexpr std::size_t kMax = 1024;
Definition g_definitions[kMax];
std::size_t g_count = 0;

bool same(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}
bool begins(const char* text, const char* begin) {
  while (*begin != 0 && *text == *begin) ++text, ++begin;
  return *begin == 0;
}
const char* file_name(const char* path) {
  const char* name = path;
  for (const char* at = path; *at != 0; ++at)
    if (*at == '/') name = at + 1;
  return name;
}

struct Dynamic {
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const Elf64_Half* versions = nullptr;
  const std::uint32_t* hash = nullptr;
  const Elf64_Verdef* definitions = nullptr;
  std::uint64_t definition_count = 0;
};

// Before relocation glibc leaves link-time addresses here, later it may have moved them in place.
Dynamic read_dynamic(const link_map& map) {
  Dynamic out;
  const auto at = [&map](std::uint64_t value) { return value < map.l_addr ? map.l_addr + value : value; };
  for (const Elf64_Dyn* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    const std::uint64_t value = entry->d_un.d_val;
    if (entry->d_tag == DT_SYMTAB) out.symbols = reinterpret_cast<const Elf64_Sym*>(at(value));
    if (entry->d_tag == DT_STRTAB) out.strings = reinterpret_cast<const char*>(at(value));
    if (entry->d_tag == DT_VERSYM) out.versions = reinterpret_cast<const Elf64_Half*>(at(value));
    if (entry->d_tag == DT_GNU_HASH) out.hash = reinterpret_cast<const std::uint32_t*>(at(value));
    if (entry->d_tag == DT_VERDEF) out.definitions = reinterpret_cast<const Elf64_Verdef*>(at(value));
    if (entry->d_tag == DT_VERDEFNUM) out.definition_count = value;
  }
  return out;
}

const char* version_name(const Dynamic& dynamic, unsigned index) {
  const Elf64_Verdef* definition = dynamic.definitions;
  for (std::uint64_t i = 0; definition != nullptr && i < dynamic.definition_count; ++i) {
    const auto* bytes = reinterpret_cast<const char*>(definition);
    if (definition->vd_ndx == index)
      return dynamic.strings + reinterpret_cast<const Elf64_Verdaux*>(bytes + definition->vd_aux)->vda_name;
    if (definition->vd_next == 0) break;
    definition = reinterpret_cast<const Elf64_Verdef*>(bytes + definition->vd_next);
  }
  return "";
}

/// How many symbols there are, which nothing says but the last chain of the hash table: where the symbols end
/// is each linker's own choice (behind GNU ld's stand the strings, behind LLD's the versions).
std::size_t count_symbols(const std::uint32_t* hash) {
  const std::uint32_t buckets = hash[0];
  const std::uint32_t first = hash[1];
  const std::uint32_t* bucket = hash + 4 + 2 * std::size_t{hash[2]};  // the filter's words have 64 bits
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i)
    if (bucket[i] > last) last = bucket[i];
  if (last < first) return first;
  const std::uint32_t* chain = bucket + buckets;
  while ((chain[last - first] & 1U) == 0) ++last;
  return last + 1;
}

/// The exports of libkshim.so, once. It is our own file, made with --hash-style=gnu.
void learn_shim(const link_map& map) {
  const Dynamic dynamic = read_dynamic(map);
  if (dynamic.symbols == nullptr || dynamic.strings == nullptr || dynamic.versions == nullptr ||
      dynamic.hash == nullptr)
    return;
  const std::size_t count = count_symbols(dynamic.hash);
  for (std::size_t i = 1; i < count && g_count < kMax; ++i) {
    const Elf64_Sym& symbol = dynamic.symbols[i];
    const char* name = dynamic.strings + symbol.st_name;
    // Only CUDA functions are redirected, not _exit and the like.
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || begins(name, "_exit") ||
        begins(name, "_Exit"))
      continue;
    g_definitions[g_count++] = {name, version_name(dynamic, dynamic.versions[i] & 0x7fffU),
                                map.l_addr + symbol.st_value};
  }
}

bool defines_version(const link_map& map, const char* name) {
  const Dynamic dynamic = read_dynamic(map);
  for (unsigned index = 1; dynamic.strings != nullptr && index <= dynamic.definition_count; ++index)
    if (same(version_name(dynamic, index), name)) return true;
  return false;
}

Kind kind_of(const link_map& map) {
  const char* name = file_name(map.l_name);
  if (same(name, "libkshim.so")) return shim;
  if (same(name, "libc.so.6") || same(name, "libdl.so.2")) return c_library;
  if (begins(name, "libcuda.so")) return driver;
  if (!begins(name, "libcudart")) return other;
  if (defines_version(map, "libcudart.so.13")) return runtime13;
  if (defines_version(map, "libcudart.so.12")) return runtime12;
  return defines_version(map, "libcudart.so.11.0") ? runtime11 : other;
}

/// Whether libkshim.so's `definition` stands in for what an object of that kind defines.
bool stands_in(const Definition& definition, Kind kind) {
  switch (kind) {
    case c_library:
      return begins(definition.name, "dl");
    case driver:
      return same(definition.version, "KSHIM_1");
    case runtime11:
      return same(definition.version, "libcudart.so.11.0");
    case runtime12:
      return same(definition.version, "libcudart.so.12");
    case runtime13:
      return same(definition.version, "libcudart.so.13");
    case other:
    case shim:
      break;
  }
  return false;
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] unsigned la_version(unsigned version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

[[gnu::visibility("default")]] unsigned la_objopen(link_map* map, Lmid_t space, std::uintptr_t* cookie) {
  *cookie = other;
  // In another namespace the shim would not know the files it is called for.
  if (space != LM_ID_BASE) return 0;
  const Kind kind = kind_of(*map);
  *cookie = kind;
  if (kind == shim) {
    if (g_count == 0) learn_shim(*map);
    return 0;
  }
  // Calls between these objects are left alone.
  if (kind == c_library) return LA_FLG_BINDTO;
  if (kind == driver) return LA_FLG_BINDTO;
  return kind == other ? LA_FLG_BINDFROM : LA_FLG_BINDFROM | LA_FLG_BINDTO;
}

[[gnu::visibility("default")]] std::uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned, std::uintptr_t*,
                                                           std::uintptr_t* definer, unsigned* flags,
                                                           const char* name) {
  // What dlsym answers stays: a caller that asks for the next definition behind the shim must not be led back
  // to it.
  if ((*flags & LA_SYMB_DLSYM) != 0) return symbol->st_value;
  if (!begins(name, "dl") && !begins(name, "cu") && !begins(name, "__cuda")) return symbol->st_value;
  const auto kind = static_cast<Kind>(*definer);
  for (std::size_t i = 0; i < g_count; ++i)
    if (same(g_definitions[i].name, name) && stands_in(g_definitions[i], kind))
      return g_definitions[i].address;
  return symbol->st_value;
}
}

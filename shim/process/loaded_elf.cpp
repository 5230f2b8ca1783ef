// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_elf.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kshim::shim {
namespace {

template <class T>
const T* at(std::uintptr_t address) noexcept {
  return reinterpret_cast<const T*>(address);
}

}  // namespace

LoadedElf::LoadedElf(ElfW(Addr) base, const ElfW(Phdr) * headers, std::size_t count) noexcept
    : base_(base), low_(UINTPTR_MAX), headers_(headers), header_count_(count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto& header = headers[i];
    if (header.p_type == PT_LOAD) {
      low_ = std::min<std::uintptr_t>(low_, base + header.p_vaddr);
      high_ = std::max<std::uintptr_t>(high_, base + header.p_vaddr + header.p_memsz);
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    if (headers[i].p_type == PT_DYNAMIC) read_dynamic(at<ElfW(Dyn)>(base + headers[i].p_vaddr));
}

// glibc relocates the pointers of most entries in place, other linkers (and the vdso) leave link-time
// addresses.
void LoadedElf::read_dynamic(const ElfW(Dyn) * dynamic) noexcept {
  const auto pointer = [this](std::uint64_t value) -> std::uintptr_t {
    if (contains(value)) return value;
    return contains(base_ + value) ? base_ + value : 0;
  };
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    const std::uint64_t value = dynamic->d_un.d_val;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symbols_ = at<ElfW(Sym)>(pointer(value));
        break;
      case DT_STRTAB:
        strings_ = at<char>(pointer(value));
        break;
      case DT_STRSZ:
        strings_size_ = value;
        break;
      case DT_GNU_HASH:
        gnu_hash_ = at<std::uint32_t>(pointer(value));
        break;
      case DT_HASH:
        sysv_hash_ = at<std::uint32_t>(pointer(value));
        break;
      case DT_VERSYM:
        versions_ = at<ElfW(Half)>(pointer(value));
        break;
      case DT_VERDEF:
        version_definitions_ = at<ElfW(Verdef)>(pointer(value));
        break;
      case DT_VERDEFNUM:
        version_definition_count_ = value;
        break;
      case DT_RELA:
        data_relocations_.rows = at<ElfW(Rela)>(pointer(value));
        break;
      case DT_RELASZ:
        data_relocations_.bytes = value;
        break;
      case DT_RELACOUNT:
        relative_count_ = value;
        break;
      case DT_JMPREL:
        call_relocations_.rows = at<ElfW(Rela)>(pointer(value));
        break;
      case DT_PLTRELSZ:
        call_relocations_.bytes = value;
        break;
      case DT_SONAME:
        soname_offset_ = value;
        break;
      default:
        break;
    }
  }
  if (symbols_ == nullptr || strings_ == nullptr) gnu_hash_ = sysv_hash_ = nullptr;
}

bool LoadedElf::contains(std::uintptr_t address) const noexcept { return !bytes_from(address).empty(); }

bool LoadedElf::is_in_segment(std::uintptr_t address, ElfW(Word) flag) const noexcept {
  for (std::size_t i = 0; i < header_count_; ++i) {
    const auto& header = headers_[i];
    const std::uintptr_t start = base_ + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & flag) != 0 && address >= start &&
        address - start < header.p_memsz)
      return true;
  }
  return false;
}

bool LoadedElf::is_code(std::uintptr_t address) const noexcept { return is_in_segment(address, PF_X); }
bool LoadedElf::is_writable(std::uintptr_t address) const noexcept { return is_in_segment(address, PF_W); }

Bytes LoadedElf::bytes_from(std::uintptr_t address) const noexcept {
  for (std::size_t i = 0; i < header_count_; ++i) {
    const auto& header = headers_[i];
    const std::uintptr_t start = base_ + header.p_vaddr;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0 && address >= start &&
        address - start < header.p_memsz)
      return {at<std::byte>(address), static_cast<std::size_t>(header.p_memsz - (address - start))};
  }
  return {};
}

std::string_view LoadedElf::text_at(std::uint64_t offset) const noexcept {
  if (strings_ == nullptr || offset >= strings_size_) return {};
  return {strings_ + offset, strnlen(strings_ + offset, static_cast<std::size_t>(strings_size_ - offset))};
}

std::string_view LoadedElf::soname() const noexcept {
  return soname_offset_ == 0 ? std::string_view() : text_at(soname_offset_);
}

bool LoadedElf::needs(std::string_view soname) const noexcept {
  for (std::size_t i = 0; i < header_count_ && !soname.empty(); ++i) {
    if (headers_[i].p_type != PT_DYNAMIC) continue;
    for (const auto* row = at<ElfW(Dyn)>(base_ + headers_[i].p_vaddr); row->d_tag != DT_NULL; ++row)
      if (row->d_tag == DT_NEEDED && text_at(row->d_un.d_val) == soname) return true;
  }
  return false;
}

bool LoadedElf::version_matches(std::uint32_t symbol, std::string_view version) const noexcept {
  if (version.empty()) return true;
  if (versions_ == nullptr || version_definitions_ == nullptr) return false;
  const unsigned wanted = versions_[symbol] & 0x7fffU;
  const auto* definition = version_definitions_;
  for (std::uint64_t i = 0; i < version_definition_count_; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(definition);
    if (definition->vd_ndx == wanted)
      return text_at(at<ElfW(Verdaux)>(address + definition->vd_aux)->vda_name) == version;
    if (definition->vd_next == 0) break;
    definition = at<ElfW(Verdef)>(address + definition->vd_next);
  }
  return false;
}

bool LoadedElf::defines_version(std::string_view version) const noexcept {
  const auto* definition = version_definitions_;
  for (std::uint64_t i = 0; definition != nullptr && i < version_definition_count_; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(definition);
    if (text_at(at<ElfW(Verdaux)>(address + definition->vd_aux)->vda_name) == version) return true;
    if (definition->vd_next == 0) break;
    definition = at<ElfW(Verdef)>(address + definition->vd_next);
  }
  return false;
}

bool LoadedElf::is_definition(std::uint32_t symbol, std::string_view name,
                              std::string_view version) const noexcept {
  return symbols_[symbol].st_shndx != SHN_UNDEF && symbols_[symbol].st_value != 0 &&
         text_at(symbols_[symbol].st_name) == name && version_matches(symbol, version);
}

// Layout of .gnu.hash: bucket count, first hashed symbol, bloom words, bloom shift; bloom filter of machine
// words; buckets; chains whose last member has bit 0 set (glibc, do_lookup_x).
std::uint32_t LoadedElf::find_gnu(std::string_view name, std::uint32_t hash,
                                  std::string_view version) const noexcept {
  const std::uint32_t bucket_count = gnu_hash_[0];
  const std::uint32_t first = gnu_hash_[1];
  const std::uint32_t bloom_words = gnu_hash_[2];
  if (bucket_count == 0 || bloom_words == 0) return 0;
  const auto* bloom = reinterpret_cast<const std::uint64_t*>(gnu_hash_ + 4);
  const std::uint64_t word = bloom[hash / 64 % bloom_words];
  const std::uint64_t mask = 1ULL << (hash % 64) | 1ULL << ((hash >> gnu_hash_[3]) % 64);
  if ((word & mask) != mask) return 0;
  const std::uint32_t* buckets = gnu_hash_ + 4 + std::size_t{bloom_words} * 2;
  const std::uint32_t* chains = buckets + bucket_count;
  std::uint32_t i = buckets[hash % bucket_count];
  if (i < first) return 0;
  for (;; ++i) {
    const std::uint32_t chain = chains[i - first];
    if ((chain | 1U) == (hash | 1U) && is_definition(i, name, version)) return i;
    if ((chain & 1U) != 0) return 0;
  }
}

// DT_HASH (System V ABI, "Hash Table"): some vendors' libraries have no other.
std::uint32_t LoadedElf::find_sysv(std::string_view name, std::string_view version) const noexcept {
  std::uint32_t hash = 0;
  for (const char character : name) {
    hash = (hash << 4U) + static_cast<unsigned char>(character);
    hash ^= (hash & 0xf0000000U) >> 24U;
    hash &= 0x0fffffffU;
  }
  const std::uint32_t bucket_count = sysv_hash_[0];
  const std::uint32_t* buckets = sysv_hash_ + 2;
  const std::uint32_t* chains = buckets + bucket_count;
  if (bucket_count == 0) return 0;
  for (std::uint32_t i = buckets[hash % bucket_count]; i != 0 && i < sysv_hash_[1]; i = chains[i])
    if (is_definition(i, name, version)) return i;
  return 0;
}

void* LoadedElf::find_symbol(std::string_view name, std::uint32_t hash,
                             std::string_view version) const noexcept {
  const std::uint32_t i = gnu_hash_ != nullptr    ? find_gnu(name, hash, version)
                          : sysv_hash_ != nullptr ? find_sysv(name, version)
                                                  : 0;
  return i == 0 ? nullptr : reinterpret_cast<void*>(base_ + symbols_[i].st_value);
}

// Only the hash tables tell how many dynamic symbols there are: DT_HASH plainly, .gnu.hash by the end of the
// last chain.
std::uint32_t LoadedElf::symbol_count() const noexcept {
  if (sysv_hash_ != nullptr) return sysv_hash_[1];
  if (gnu_hash_ == nullptr) return 0;
  const std::uint32_t bucket_count = gnu_hash_[0];
  const std::uint32_t first = gnu_hash_[1];
  const std::uint32_t* buckets = gnu_hash_ + 4 + std::size_t{gnu_hash_[2]} * 2;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < bucket_count; ++i) last = std::max(last, buckets[i]);
  if (last < first) return first;
  const std::uint32_t* chains = buckets + bucket_count;
  while ((chains[last - first] & 1U) == 0) ++last;
  return last + 1;
}

std::string_view LoadedElf::symbol_at(std::uintptr_t address) const noexcept {
  const std::uint32_t count = symbol_count();
  const std::uint64_t wanted = address - base_;
  for (std::uint32_t i = 1; i < count; ++i) {
    const auto& symbol = symbols_[i];
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        wanted >= symbol.st_value && wanted - symbol.st_value < symbol.st_size)
      return text_at(symbol.st_name);
  }
  return {};
}

bool LoadedElf::has_dynamic_address(std::uintptr_t address) const noexcept {
  const std::uint32_t count = symbol_count();
  for (std::uint32_t i = 1; i < count; ++i)
    if (symbols_[i].st_shndx != SHN_UNDEF && base_ + symbols_[i].st_value == address) return true;
  return false;
}

// Undefined symbols are not in .gnu.hash (but for functions whose address an executable takes); they come
// before the first hashed one. A table without any hashed symbol says 1 there whatever the number of
// undefined ones: then the string table's start bounds the symbol table.
std::uint32_t LoadedElf::import_end() const noexcept {
  const std::uint32_t count = symbol_count();
  if (sysv_hash_ != nullptr || gnu_hash_ == nullptr || count > 1) return count;
  const auto table = reinterpret_cast<std::uintptr_t>(symbols_);
  const auto strings = reinterpret_cast<std::uintptr_t>(strings_);
  return strings > table ? static_cast<std::uint32_t>((strings - table) / sizeof(ElfW(Sym))) : count;
}

bool LoadedElf::imports(std::string_view name) const noexcept {
  const std::uint32_t end = import_end();
  for (std::uint32_t i = 1; i < end; ++i)
    if (symbols_[i].st_shndx == SHN_UNDEF && text_at(symbols_[i].st_name) == name) return true;
  return false;
}

namespace {

// A call, a pointer in the offset table, a pointer in data: each holds the address of the symbol.
#if defined(__x86_64__)
constexpr std::uint64_t kPointers[] = {R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_64};
#elif defined(__aarch64__)
constexpr std::uint64_t kPointers[] = {R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_ABS64};
#endif

}  // namespace

void LoadedElf::each_binding(bool (*wants)(std::string_view),
                             bool (*visit)(void*, std::string_view, std::uintptr_t),
                             void* context) const noexcept {
  // Few imports are asked for, and most files have none of them: their relocations need not be read then.
  constexpr std::size_t kMost = 128;
  std::uint32_t wanted[kMost];
  std::size_t count = 0;
  const bool hashed = gnu_hash_ != nullptr && gnu_hash_[1] > 1;
  const std::uint32_t end = symbols_ == nullptr ? 0 : hashed ? gnu_hash_[1] : import_end();
  for (std::uint32_t i = 1; i < end && count < kMost; ++i)
    if (symbols_[i].st_shndx == SHN_UNDEF && wants(text_at(symbols_[i].st_name))) wanted[count++] = i;
  if (count == 0) return;
  for (const Relocations* table : {&data_relocations_, &call_relocations_}) {
    if (table->rows == nullptr) continue;
    const Bytes mapped = bytes_from(reinterpret_cast<std::uintptr_t>(table->rows));
    const std::uint64_t rows = std::min<std::uint64_t>(table->bytes, mapped.size()) / sizeof(ElfW(Rela));
    for (std::uint64_t i = table == &data_relocations_ ? relative_count_ : 0; i < rows; ++i) {
      const ElfW(Rela)& row = table->rows[i];
      const std::uint64_t symbol = ELF64_R_SYM(row.r_info);
      if (symbol < wanted[0] || symbol > wanted[count - 1] ||
          !std::binary_search(wanted, wanted + count, symbol) ||
          std::find(std::begin(kPointers), std::end(kPointers), ELF64_R_TYPE(row.r_info)) ==
              std::end(kPointers))
        continue;
      const std::uintptr_t slot = base_ + row.r_offset;
      if (bytes_from(slot).size() < sizeof slot) continue;
      std::uintptr_t address = 0;
      std::memcpy(&address, at<std::byte>(slot), sizeof address);
      if (!visit(context, text_at(symbols_[symbol].st_name), address)) return;
    }
  }
}

Bytes LoadedElf::build_id() const noexcept {
  for (std::size_t i = 0; i < header_count_; ++i) {
    if (headers_[i].p_type != PT_NOTE) continue;
    const Bytes notes = bytes_from(base_ + headers_[i].p_vaddr);
    std::uint64_t cursor = 0;
    const std::uint64_t end = std::min<std::uint64_t>(headers_[i].p_memsz, notes.size());
    while (cursor + sizeof(ElfW(Nhdr)) <= end) {
      const auto note = read_le<ElfW(Nhdr)>(notes, cursor);
      if (!note) break;
      const std::uint64_t name = cursor + sizeof(ElfW(Nhdr));
      const std::uint64_t data = name + ((note->n_namesz + 3ULL) & ~3ULL);
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {
        const auto owner = slice(notes, name, 4);
        const auto id = slice(notes, data, note->n_descsz);
        if (owner && id && text_of(*owner) == std::string_view("GNU\0", 4)) return *id;
      }
      cursor = data + ((note->n_descsz + 3ULL) & ~3ULL);
    }
  }
  return {};
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// A driver exports the functions of its CUDA version: a runtime that looks cuGetProcAddress_v2 up in a driver
// of CUDA 11 does not find it. Names that the simulated driver is too old for are removed from this library's
// .dynsym, so that dlsym() does not find them. References of programs linked to them are bound already.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <unordered_map>

#include "boot/export_tables.h"
#include "entry/table.h"
#include "entry/thunks.h"

extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;

namespace kshim::sim {
namespace {

struct DynamicSymbols {
  ElfW(Sym) * first = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;  ///< DT_GNU_HASH

  /// The section's header is not loaded; the last chain of the hash table ends with the last symbol.
  std::size_t count() const noexcept {
    const std::uint32_t buckets = hash[0];
    const std::uint32_t offset = hash[1];
    const std::uint32_t* const bucket =
        hash + 4 + std::size_t{hash[2]} * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* const chain = bucket + buckets;
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
    if (last < offset) return 0;
    while ((chain[last - offset] & 1U) == 0) ++last;
    return std::size_t{last} + 1;
  }
};

DynamicSymbols own_symbols() noexcept {
  DynamicSymbols out;
  for (const ElfW(Dyn)* entry = _DYNAMIC; entry->d_tag != DT_NULL; ++entry) {  // relocated by ld.so
    if (entry->d_tag == DT_SYMTAB) out.first = reinterpret_cast<ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) out.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) out.hash = reinterpret_cast<const std::uint32_t*>(entry->d_un.d_ptr);
  }
  return out;
}

int rights_at(std::uintptr_t address) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(&__ehdr_start);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  int rights = PROT_READ;
  for (unsigned i = 0; i < __ehdr_start.e_phnum; ++i) {
    const ElfW(Phdr)& segment = segments[i];
    if (segment.p_type != PT_LOAD || address - base - segment.p_vaddr >= segment.p_memsz) continue;
    if ((segment.p_flags & PF_X) != 0) rights |= PROT_EXEC;
  }
  return rights;
}

// Before other constructors, as fill_slots() is.
[[gnu::constructor(102)]] void hide_what_is_newer() {
  // Settings are read at the first call, later than this: a program may set them until then.
  if (std::getenv("KSHIM_SIM_DRIVER") == nullptr) return;
  std::unordered_map<std::string_view, int> newer;
  for (unsigned row = 0; row < kRowCount; ++row)
    if (introduced(row) > driver_version()) newer.emplace(kSymbols[row], introduced(row));
  const DynamicSymbols symbols = own_symbols();
  if (newer.empty() || symbols.first == nullptr || symbols.names == nullptr || symbols.hash == nullptr)
    return;
  const std::size_t count = symbols.count();
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(symbols.first) & ~(page - 1);
  const std::size_t size = reinterpret_cast<std::uintptr_t>(symbols.first + count) - begin;
  if (mprotect(reinterpret_cast<void*>(begin), size, PROT_READ | PROT_WRITE) != 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    ElfW(Sym)& symbol = symbols.first[i];
    if (newer.count(symbols.names + symbol.st_name) == 0) continue;
    symbol.st_shndx = SHN_UNDEF;
    symbol.st_value = 0;
  }
  mprotect(reinterpret_cast<void*>(begin), size, rights_at(reinterpret_cast<std::uintptr_t>(symbols.first)));
}

}  // namespace
}  // namespace kshim::sim

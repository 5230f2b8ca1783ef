// SPDX-License-Identifier: Apache-2.0
#include "process/stack/unwind_tables.h"

#include <link.h>

#include <cstring>
#include <string_view>

#include "process/loaded_objects.h"

namespace kshim::shim {
namespace {

/// A table of .eh_frame_hdr as all linkers write it. libunwind would search a file without one from its
/// beginning to its end.
bool is_usual(Bytes header) noexcept {
  // Version 1; DW_EH_PE_pcrel|sdata4, DW_EH_PE_udata4, DW_EH_PE_datarel|sdata4 ("DWARF Exception Header
  // Encoding", Linux Standard Base, Core).
  constexpr unsigned char kUsual[] = {1, 0x1b, 0x03, 0x3b};
  return header.size() >= sizeof kUsual && std::memcmp(header.data(), kUsual, sizeof kUsual) == 0;
}

}  // namespace

UnwindTables find_unwind_tables(std::uintptr_t address) noexcept {
  const LoadedElf elf = find_elf_in_use(address);
  UnwindTables out{elf.base(), elf.low(), elf.high(), 0, 0};
  if (elf.high() == 0 || elf.unwind_header() == 0) return out;
  if (!elf.is_code(address) || !is_usual(elf.bytes_from(elf.unwind_header()))) return out;
  out.header = elf.unwind_header();
  out.header_size = elf.unwind_header_size();
  return out;
}

}  // namespace kshim::shim

// Replacements for the C library's functions that libunwind calls (--wrap).
using namespace kshim::shim;
extern "C" {
/// glibc's struct dl_find_object.
struct kshim_found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
[[gnu::visibility("hidden")]] int kshim_find_object(void* address, kshim_found_object* result);
void* __wrap_dlsym(void* handle, const char* name);
int __wrap_dladdr(const void* address, void* info);
int __wrap_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* context);

int kshim_find_object(void* address, kshim_found_object* result) {
  const UnwindTables tables = find_unwind_tables(reinterpret_cast<std::uintptr_t>(address));
  if (tables.high == 0) return -1;
  *result = {};
  result->map_start = reinterpret_cast<void*>(tables.low);
  result->map_end = reinterpret_cast<void*>(tables.high);
  result->eh_frame = reinterpret_cast<void*>(tables.header);
  return 0;
}

/// libunwind looks up only _dl_find_object.
void* __wrap_dlsym(void*, const char* name) {
  return std::string_view(name) == "_dl_find_object" ? reinterpret_cast<void*>(&kshim_find_object) : nullptr;
}

/// libunwind looks names of functions up with it. The shim does not ask for names.
int __wrap_dladdr(const void*, void*) { return 0; }

/// For a libunwind that was built for a C library without _dl_find_object, and for addresses outside of all
/// files. Of libunwind's context only the address that it looks for is read: its third word.
int __wrap_dl_iterate_phdr(int (*visit)(dl_phdr_info*, std::size_t, void*), void* context) {
  std::uintptr_t words[3];
  std::memcpy(words, context, sizeof words);
  const UnwindTables tables = find_unwind_tables(words[2]);
  if (tables.header == 0) return 0;
  ElfW(Phdr) headers[2] = {};
  headers[0].p_type = PT_LOAD;
  headers[0].p_flags = PF_R | PF_X;
  headers[0].p_vaddr = tables.low - tables.base;
  headers[0].p_memsz = tables.high - tables.low;
  headers[1].p_type = PT_GNU_EH_FRAME;
  headers[1].p_flags = PF_R;
  headers[1].p_vaddr = tables.header - tables.base;
  headers[1].p_memsz = tables.header_size;
  dl_phdr_info info = {};
  info.dlpi_addr = tables.base;
  info.dlpi_name = "";
  info.dlpi_phdr = headers;
  info.dlpi_phnum = 2;
  return visit(&info, sizeof info, context);
}
}

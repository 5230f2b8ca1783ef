// SPDX-License-Identifier: Apache-2.0
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyzer/core/text.h"
#include "analyzer/device_code/source_lines.h"
#include "kshim/files/open_file.h"

namespace kshim::device_code {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFrames = 32;
constexpr off_t kMaxFileBytes = off_t{8} << 30;

/// A file's DWARF; released with the process.
Dwarf* open_dwarf(const fs::path& path, std::string_view build_id) {
  static files::OpenFile file;  // open as long as the process
  file = files::open_to_read(path);
  if (!file || file.status.st_size > kMaxFileBytes) return nullptr;
  elf_version(EV_CURRENT);
  Elf* elf = elf_begin(file.fd.get(), ELF_C_READ_MMAP, nullptr);
  if (elf == nullptr || elf_kind(elf) != ELF_K_ELF) return nullptr;
  const void* bits = nullptr;
  const ssize_t size = dwelf_elf_gnu_build_id(elf, &bits);
  const Bytes found(static_cast<const std::byte*>(bits), static_cast<std::size_t>(size > 0 ? size : 0));
  if (core::hex(found) != build_id) return nullptr;
  return dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
}

/// Whether there is more than the unwinder's tables.
bool has_units(Dwarf* dwarf) {
  Dwarf_CU* unit = nullptr;
  return dwarf != nullptr && dwarf_get_units(dwarf, nullptr, &unit, nullptr, nullptr, nullptr, nullptr) == 0;
}

/// The unit of an address, by .debug_aranges, or where a compiler (clang) left that out by asking each unit.
bool unit_of(Dwarf* dwarf, Dwarf_Addr address, Dwarf_Die& unit) {
  if (dwarf_addrdie(dwarf, address, &unit) != nullptr) return true;
  Dwarf_CU* cu = nullptr;
  Dwarf_Die die;
  while (dwarf_get_units(dwarf, cu, &cu, nullptr, nullptr, &die, nullptr) == 0) {
    if (dwarf_haspc(&die, address) != 1) continue;
    unit = die;
    return true;
  }
  return false;
}

std::string absolute(const char* file, Dwarf_Die& unit) {
  if (file == nullptr) return {};
  if (*file == '/') return file;
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
  return folder == nullptr
             ? std::string(file)
             : std::filesystem::path(std::string(folder) + "/" + file).lexically_normal().string();
}

std::string name_of(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    if (const char* text = dwarf_formstring(dwarf_attr_integrate(&die, name, &attribute))) return text;
  }
  return {};
}

Dwarf_Word number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word out = 0;
  if (dwarf_formudata(dwarf_attr(&die, name, &attribute), &out) != 0) return 0;
  return out;
}

SourceLine call_site(Dwarf_Die& die, Dwarf_Die& unit) {
  SourceLine out;
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  const Dwarf_Word file = number_of(die, DW_AT_call_file);
  if (dwarf_getsrcfiles(&unit, &files, &count) == 0 && file < count)
    out.file = absolute(dwarf_filesrc(files, file, nullptr, nullptr), unit);
  out.line = static_cast<unsigned>(number_of(die, DW_AT_call_line));
  return out;
}

// The scopes around an address by way of the code; dwarf_getscopes() alone would go on in the inlined
// function's own.
int scopes_of(Dwarf* dwarf, Dwarf_Die& unit, Dwarf_Addr address, Dwarf_Die*& scopes) {
  Dwarf_Die* at = nullptr;
  if (dwarf_getscopes(&unit, address, &at) <= 0) return 0;
  Dwarf_Die innermost;
  const bool found = dwarf_offdie(dwarf, dwarf_dieoffset(&at[0]), &innermost) != nullptr;
  std::free(at);  // libdw's own contract
  return found ? dwarf_getscopes_die(&innermost, &scopes) : 0;
}

SourceFrames frames_at(Dwarf* dwarf, Dwarf_Addr address) {
  SourceFrames out;
  Dwarf_Die unit;
  if (!unit_of(dwarf, address, unit)) return out;
  SourceLine here;
  if (Dwarf_Line* line = dwarf_getsrc_die(&unit, address)) {
    int number = 0;
    dwarf_lineno(line, &number);
    here.file = absolute(dwarf_linesrc(line, nullptr, nullptr), unit);
    here.line = number > 0 ? static_cast<unsigned>(number) : 0;
  }
  Dwarf_Die* scopes = nullptr;
  const int count = scopes_of(dwarf, unit, address, scopes);
  for (int i = 0; i < count && out.size() < kMaxFrames; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    out.push_back({here, name_of(scopes[i])});
    if (tag == DW_TAG_subprogram) break;
    here = call_site(scopes[i], unit);
  }
  if (out.empty() && !here.file.empty()) out.push_back({here, {}});
  return out;
}

}  // namespace

std::vector<SourceFrames> read_dwarf(const HostFile& file, const std::vector<std::uint64_t>& addresses) {
  std::vector<SourceFrames> out(addresses.size());
  Dwarf* dwarf = open_dwarf(file.path, file.build_id);
  if (!has_units(dwarf))
    dwarf = file.build_id.empty() ? nullptr : open_dwarf(debug_file(file), file.build_id);
  if (!has_units(dwarf)) return out;
  for (std::size_t i = 0; i < addresses.size(); ++i) out[i] = frames_at(dwarf, addresses[i]);
  return out;
}

}  // namespace kshim::device_code

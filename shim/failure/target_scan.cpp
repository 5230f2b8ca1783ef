// SPDX-License-Identifier: Apache-2.0
#include "failure/target_scan.h"

#include <algorithm>

#include "guest/file_copy.h"
#include "guest/text_buffer.h"
#include "kshim/image/elf.h"
#include "kshim/image/fatbin.h"
#include "process/loaded_objects.h"

namespace kshim::shim {
namespace {

constexpr std::size_t kHead = 4096;  // the ELF header, and the program headers right behind it
constexpr std::uint64_t kSectionHeader = 64;
constexpr std::uint64_t kMaxNames = 1ULL << 20U;

struct Place {
  std::uint64_t address = 0;  ///< link-time
  std::uint64_t size = 0;
};

/// Finds a file's fatbin wrappers. Section headers are not mapped, so they are read from the file.
Place wrappers_of(std::string_view path) noexcept {
  PathText name;
  name << path;
  FileCopy file(name.c_str());
  const Bytes bytes = file.bytes();
  file.fetch(0, kHead);
  // The parts of the tables that ElfReader needs to find a section by its name.
  const auto table = read_le<std::uint64_t>(bytes, 40);
  const auto count = read_le<std::uint16_t>(bytes, 60);
  const auto names = read_le<std::uint16_t>(bytes, 62);
  if (!table || !count || !names) return {};
  file.fetch(*table, *count * kSectionHeader);
  const std::uint64_t entry = *table + *names * kSectionHeader;
  const auto offset = read_le<std::uint64_t>(bytes, entry + 24);
  const auto size = read_le<std::uint64_t>(bytes, entry + 32);
  if (*table > bytes.size() || !offset || !size) return {};
  file.fetch(*offset, std::min(*size, kMaxNames));
  const auto elf = image::ElfReader::open(bytes);
  if (!elf) return {};
  const auto section = elf->section(".nvFatBinSegment");
  return section ? Place{section->address, section->size} : Place{};
}

bool scan_file(void* context, const LoadedObject& object) {
  const auto& visit = *static_cast<const FunctionRef<void(const DeviceCode&)>*>(context);
  if (object.identity == 0 || is_shim(object.elf.low())) return true;
  const Place place = wrappers_of(object.path);
  for (std::uint64_t at = 0; at + sizeof(image::FatbinWrapper) <= place.size;
       at += sizeof(image::FatbinWrapper)) {
    const std::uintptr_t address = object.elf.base() + place.address + at;
    // Another thread may unload it meanwhile.
    if (find_loaded_object(address).identity != object.identity) break;
    DeviceCode code;
    examine_memory(address, LoadResult::loaded, code);
    if (code.wrapped) visit(code);
  }
  return true;
}

}  // namespace

std::uint64_t scan_mapped_files(std::uint64_t after, FunctionRef<void(const DeviceCode&)> visit) noexcept {
  return for_each_loaded_object(scan_file, &visit, {.after = after});
}

}  // namespace kshim::shim

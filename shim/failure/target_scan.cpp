// SPDX-License-Identifier: Apache-2.0
#include "failure/target_scan.h"

#include <algorithm>
#include <atomic>

#include "failure/gaps.h"
#include "guest/errno_keeper.h"
#include "guest/file_copy.h"
#include "guest/options.h"
#include "guest/text_buffer.h"
#include "kshim/image/elf.h"
#include "kshim/image/fatbin.h"
#include "process/loaded_objects.h"
#include "report/report_file.h"

namespace kshim::shim {
namespace {

std::atomic<std::uint32_t> g_surveyed[kMaxIdentities];  // by identity: the number of the report

constexpr std::size_t kHead = 4096;  // the ELF header, and the program headers right behind it
constexpr std::uint64_t kSectionHeader = 64;
constexpr std::uint64_t kMaxNames = 1ULL << 20U;

struct Place {
  std::uint64_t address = 0;  ///< link-time
  std::uint64_t size = 0;
};

/// Where a file's wrappers are. Section headers are not mapped with a library: they are read from the file.
Place wrappers_of(std::string_view path) noexcept {
  PathText name;
  name << path;
  FileCopy file(name.c_str());
  const Bytes bytes = file.bytes();
  file.fetch(0, kHead);
  // Of the tables, what ElfReader looks at to find a section by its name.
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

bool survey(void* context, const LoadedObject& object) {
  const std::uint32_t number = *static_cast<const std::uint32_t*>(context);
  if (object.identity >= kMaxIdentities || is_shim(object.elf.low())) return true;
  if (g_surveyed[object.identity].exchange(number, std::memory_order_acq_rel) == number) return true;
  const Place place = wrappers_of(object.path);
  for (std::uint64_t at = 0; at + sizeof(image::FatbinWrapper) <= place.size;
       at += sizeof(image::FatbinWrapper)) {
    const std::uintptr_t address = object.elf.base() + place.address + at;
    // Of an object that another thread may unload meanwhile, nothing is read but by find_loaded_object().
    if (find_loaded_object(address).identity != object.identity) break;
    DeviceCode code;
    examine_memory(address, false, code);
    if (code.wrapped) note_gaps(code, {});
  }
  return true;
}

}  // namespace

void survey_targets() noexcept {
  if (options().targets.empty()) return;
  const ErrnoKeeper keeper;
  std::uint32_t number = begin_report();
  if (number != 0) for_each_loaded_object(survey, &number);
}

}  // namespace kshim::shim

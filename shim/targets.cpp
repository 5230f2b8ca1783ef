// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "gaps.h"
#include "kshim/image/elf.h"
#include "kshim/image/fatbin.h"
#include "objects.h"
#include "options.h"
#include "report_file.h"
#include "system_calls.h"

namespace kshim::shim {
namespace {

std::atomic<std::uint32_t> g_surveyed[kMaxIdentities];  // by identity: the number of the report

struct Place {
  std::uint64_t address = 0;  ///< link-time
  std::uint64_t size = 0;
};

/// Where a file's wrappers are. Section headers are not mapped with a library: they are read from the file.
Place wrappers_of(std::string_view path) noexcept {
  PathText name;
  name << path;
  const int file = raw::open_file(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  Place place;
  struct stat facts {};
  if (fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_size > 0) {
    const auto size = static_cast<std::size_t>(facts.st_size);
    void* mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapping != MAP_FAILED) {
      const auto elf = image::ElfReader::open({static_cast<const std::byte*>(mapping), size});
      if (elf)
        if (const auto section = elf->section(".nvFatBinSegment")) place = {section->address, section->size};
      munmap(mapping, size);
    }
  }
  raw::close_file(file);
  return place;
}

bool survey(void* context, const ObjectView& object) {
  const std::uint32_t number = *static_cast<const std::uint32_t*>(context);
  if (object.identity >= kMaxIdentities || is_shim(object.elf.low())) return true;
  if (g_surveyed[object.identity].exchange(number, std::memory_order_acq_rel) == number) return true;
  const Place place = wrappers_of(object.path);
  for (std::uint64_t at = 0; at + sizeof(image::FatbinWrapper) <= place.size;
       at += sizeof(image::FatbinWrapper)) {
    const std::uintptr_t address = object.elf.base() + place.address + at;
    if (!object.elf.contains(address)) break;
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
  if (number != 0) each_object(survey, &number);
}

}  // namespace kshim::shim

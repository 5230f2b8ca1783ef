// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/needed_libraries.h"

#include <elf.h>

#include <cstdint>
#include <variant>

#include "analyzer/device_code/mapped_file.h"
#include "analyzer/device_code/object_file.h"
#include "kshim/image/elf.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostEntries = 4096;
constexpr std::size_t kMostName = 512;

}  // namespace

std::vector<std::string> needed_libraries(const std::string& path, std::string_view build_id) {
  const auto mapped = MappedFile::open(path);
  const auto* file = std::get_if<MappedFile>(&mapped);
  if (file == nullptr || (!build_id.empty() && build_id_of(path) != build_id)) return {};
  const auto elf = image::ElfReader::open_damaged(file->bytes());
  if (!elf) return {};
  std::vector<std::uint64_t> names;
  std::uint64_t strings = 0;
  for (std::uint32_t i = 0; i < elf->segment_count(); ++i) {
    const auto segment = elf->segment(i);
    if (!segment || segment->type != PT_DYNAMIC) continue;
    const auto entries = elf->at_address(segment->address, segment->file_size);
    for (std::size_t k = 0; entries && k < kMostEntries; ++k) {
      const auto tag = read_le<std::uint64_t>(*entries, k * sizeof(Elf64_Dyn));
      const auto value = read_le<std::uint64_t>(*entries, k * sizeof(Elf64_Dyn) + sizeof(std::uint64_t));
      if (!tag || !value || *tag == DT_NULL) break;
      if (*tag == DT_STRTAB) strings = *value;
      if (*tag == DT_NEEDED) names.push_back(*value);
    }
  }
  std::vector<std::string> out;
  const auto table = elf->from_address(strings);
  if (strings == 0 || !table) return out;
  for (const std::uint64_t offset : names) {
    if (offset >= table->size()) continue;
    const std::string_view text = text_of(table->subspan(offset)).substr(0, kMostName);
    out.emplace_back(text.substr(0, text.find('\0')));
  }
  return out;
}

}  // namespace kshim::analysis

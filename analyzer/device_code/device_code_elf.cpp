// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "analyzer/device_code/device_code_collect.h"
#include "analyzer/device_code/device_code_host.h"
#include "analyzer/device_code/device_code_pointers.h"
#include "kshim/image/fatbin_search.h"

namespace kshim::analysis {
namespace {

using image::ElfReader;
using image::ElfSection;
using image::SectionRole;

struct Places {
  std::vector<CodeRange> code;
  std::vector<CodeRange> wrappers;
};

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64le";
    case EM_386:
      return "x86";
    case EM_ARM:
      return "arm";
    default:
      return fmt::format("machine {}", machine);
  }
}

void add_section(const ElfReader& elf, const ElfSection& section, CodeCollector& collector, Places& out) {
  const SectionRole role = image::section_role(section);
  if (role == SectionRole::none) return;
  if (section.bytes.size() < section.size) {
    const std::string what = fmt::format("section {} ends behind the end of the file", section.name);
    role == SectionRole::data ? collector.host_damage(elf.bytes().size(), what)
                              : collector.damage(elf.bytes().size(), what);
  }
  const CodeRange range{section.offset, section.offset + section.bytes.size(),
                        role == SectionRole::fatbins       ? RangeKind::fatbins
                        : role == SectionRole::relocatable ? RangeKind::relocatable
                                                           : RangeKind::data};
  if (!section.bytes.empty()) (role == SectionRole::wrappers ? out.wrappers : out.code).push_back(range);
}

/// Without section headers (stripped, packed or cut off) the segments tell what is loaded. One that is
/// executable may hold read-only data as well.
void add_segments(const ElfReader& elf, Places& out) {
  for (std::uint32_t index = 0; index < elf.segment_count(); ++index) {
    const auto segment = elf.segment(index);
    if (!segment || segment->type != PT_LOAD || segment->offset >= elf.bytes().size()) continue;
    const std::uint64_t there = elf.bytes().size() - segment->offset;
    out.code.push_back(
        {segment->offset, segment->offset + std::min(segment->file_size, there), RangeKind::data});
  }
}

std::string hex(Bytes bytes) {
  constexpr std::size_t kLongestBuildId = 64;
  std::string out;
  for (const std::byte byte : bytes.first(std::min(bytes.size(), kLongestBuildId)))
    out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
}

}  // namespace

void find_in_elf(Bytes file, DeviceCode& out) {
  out.host = HostFormat::elf;
  CodeCollector collector(file, out);
  Places places;
  const auto opened = ElfReader::open_damaged(file);
  if (!opened) {
    // 32 bits (toolkits before CUDA 7) or big-endian: not read as ELF, but fatbins look the same everywhere.
    if (opened.error().code == Errc::truncated)
      collector.host_damage(file.size(), "the ELF header is cut off");
    if (const auto machine = read_le<std::uint16_t>(file, offsetof(Elf64_Ehdr, e_machine)))
      out.machine = machine_name(*machine);
    collector.collect({{0, file.size(), RangeKind::data}});
    return;
  }
  const ElfReader& elf = *opened;
  out.machine = machine_name(elf.machine());
  if (const auto id = elf.build_id()) out.build_id = hex(*id);
  if (const auto whole = ElfReader::open(file); !whole)
    collector.host_damage(whole.error().offset,
                          "the tables of sections or segments lie outside of the file or are wrong");
  for (std::uint32_t index = 1; index < elf.section_count(); ++index)
    if (const auto section = elf.section_cut(index)) add_section(elf, *section, collector, places);
  if (elf.section_count() == 0) add_segments(elf, places);
  if (elf.section_count() == 0 && elf.segment_count() == 0) places.code = {{0, file.size(), RangeKind::data}};
  collector.collect(std::move(places.code));
  std::sort(places.wrappers.begin(), places.wrappers.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.begin < b.begin; });
  if (has_linked_wrapper(places.wrappers, file))
    link_parts(places.wrappers, PointerMap::of_elf(elf), file, collector, out);
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "analyzer/device_code/device_code_collect.h"
#include "analyzer/device_code/device_code_host.h"
#include "analyzer/device_code/device_code_pointers.h"

namespace kshim::analysis {
namespace {

std::string machine_name(std::uint16_t machine) {
  switch (machine) {
    case 0x8664:
      return "x86-64";
    case 0xaa64:
      return "aarch64";
    case 0x14c:
      return "x86";
    default:
      return fmt::format("machine {:#x}", machine);
  }
}

// Linkers cut the names of sections to eight characters.
RangeKind kind_of(std::string_view name) {
  if (name == ".nv_fatb") return RangeKind::fatbins;
  return name == "__nv_rel" ? RangeKind::relocatable : RangeKind::data;
}
bool holds_wrappers(std::string_view name) { return name == ".nvFatBi"; }

}  // namespace

bool find_in_pe(Bytes file, DeviceCode& out) {
  const auto pe = image::PeReader::open(file);
  if (!pe) return false;
  out.host = HostFormat::pe;
  out.machine = machine_name(pe->machine());
  CodeCollector collector(file, out);
  std::vector<CodeRange> code;
  std::vector<CodeRange> wrappers;
  for (std::uint32_t index = 0; index < pe->section_count(); ++index) {
    const auto section = pe->section(index);
    if (!section) {
      collector.host_damage(section.error().offset, "the table of sections ends behind the end of the file");
      break;
    }
    if (section->size == 0 || section->is_code()) continue;
    if (section->bytes.size() < section->size && section->is_initialized_data())
      collector.damage(file.size(), fmt::format("section {} ends behind the end of the file", section->name),
                       nullptr,
                       kind_of(section->name) == RangeKind::data && !holds_wrappers(section->name)
                           ? Damage::Of::host
                           : Damage::Of::device_code);
    if (section->bytes.empty()) continue;
    const CodeRange range{section->offset, section->offset + section->bytes.size(), kind_of(section->name)};
    (holds_wrappers(section->name) ? wrappers : code).push_back(range);
  }
  collector.collect(std::move(code));
  std::sort(wrappers.begin(), wrappers.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.begin < b.begin; });
  if (has_linked_wrapper(wrappers, file))
    link_parts(wrappers, PointerMap::of_pe(file, *pe), file, collector, out);
  return true;
}

}  // namespace kshim::analysis

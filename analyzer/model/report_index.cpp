// SPDX-License-Identifier: Apache-2.0
#include "analyzer/model/report_index.h"

namespace kshim::analysis {
namespace {

template <class Map>
auto lookup(const Map& map, std::optional<std::uint64_t> id) -> typename Map::mapped_type {
  if (!id) return nullptr;
  const auto found = map.find(*id);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

ReportIndex::ReportIndex(const Report& report) : report_(report) {
  for (const ObjectRecord& row : report.objects) objects_.insert_or_assign(row.id, &row);
  for (const ModuleRecord& row : report.modules) modules_.insert_or_assign(row.id, &row);
  for (const PackageRecord& row : report.packages) packages_.insert_or_assign(row.object, &row);
  for (const FailureRecord& row : report.failures) {
    if (row.stage != "launch") continue;
    const ModuleRecord* loaded = module(row.module);
    if (row.module) launch_failed_modules_.insert(*row.module);
    if (row.object) launch_failed_objects_.insert(*row.object);
    if (loaded != nullptr && loaded->object) launch_failed_objects_.insert(*loaded->object);
  }
}

const ObjectRecord* ReportIndex::object(std::optional<std::uint64_t> id) const {
  return lookup(objects_, id);
}
const ModuleRecord* ReportIndex::module(std::optional<std::uint64_t> id) const {
  return lookup(modules_, id);
}
const PackageRecord* ReportIndex::package(std::uint64_t object) const { return lookup(packages_, object); }

bool ReportIndex::launch_failed(std::optional<std::uint64_t> object,
                                std::optional<std::uint64_t> module) const {
  return (object && launch_failed_objects_.count(*object) != 0) ||
         (module && launch_failed_modules_.count(*module) != 0);
}

const DeviceRecord* ReportIndex::device(std::optional<unsigned> ordinal) const {
  if (!ordinal) return report_.devices.size() == 1 ? &report_.devices.front() : nullptr;
  for (const DeviceRecord& row : report_.devices) {
    if (row.ordinal == *ordinal) return &row;
  }
  return nullptr;
}

const GapRecord* ReportIndex::gap(std::optional<std::uint64_t> object, std::optional<std::uint64_t> offset,
                                  std::optional<unsigned> device, std::uint32_t line) const {
  const GapRecord* best = nullptr;
  bool best_exact = false;
  std::uint32_t best_distance = 0;
  for (const GapRecord& row : report_.gaps) {
    // A gap without a device speaks of a KSHIM_TARGET.
    if (row.object != object || !row.device || (device && row.device != device)) continue;
    const bool exact = row.offset == offset;
    if (!exact && offset && row.offset) continue;
    const std::uint32_t distance = row.line > line ? row.line - line : line - row.line;
    if (best != nullptr && (best_exact != exact ? best_exact : best_distance <= distance)) continue;
    best = &row;
    best_exact = exact;
    best_distance = distance;
  }
  return best;
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/report_index.h"

#include <algorithm>
#include <iterator>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

template <class Map>
auto lookup(const Map& map, std::optional<std::uint64_t> id) -> typename Map::mapped_type {
  if (!id) return nullptr;
  const auto found = map.find(*id);
  return found == map.end() ? nullptr : found->second;
}

const GapRecord* nearest(const std::vector<const GapRecord*>& gaps, std::optional<unsigned> device,
                         std::uint32_t line) {
  const auto suits = [&](const GapRecord* row) { return !device || row->device == device; };
  const auto middle = std::lower_bound(gaps.begin(), gaps.end(), line,
                                       [](const GapRecord* row, std::uint32_t at) { return row->line < at; });
  const auto after = std::find_if(middle, gaps.end(), suits);
  const auto before = std::find_if(std::make_reverse_iterator(middle), gaps.rend(), suits);
  if (before == gaps.rend()) return after == gaps.end() ? nullptr : *after;
  return after != gaps.end() && (*after)->line - line < line - (*before)->line ? *after : *before;
}

}  // namespace

ReportIndex::ReportIndex(const Report& report) : report_(report) {
  for (const ObjectRecord& row : report.objects) objects_.emplace(row.id, &row);
  for (const ModuleRecord& row : report.modules) modules_.emplace(row.id, &row);
  for (const PackageRecord& row : report.packages) packages_.emplace(row.object, &row);
  for (const ModuleRecord& row : report.modules) {
    if (row.object && row.result == 0) loaded_.emplace(*row.object, row.device);
  }
  for (const GapRecord& row : report.gaps) {
    if (!row.device) continue;  // it speaks of a KSHIM_TARGET
    gaps_[row.object].push_back(&row);
    gaps_at_[{row.object, row.offset}].push_back(&row);
    if (!row.object || !row.offset) continue;  // loose images: each may be another
    const GapRecord*& fullest = fullest_[{row.object, row.offset, row.device}];
    if (fullest == nullptr || row.kernels.size() > fullest->kernels.size()) fullest = &row;
  }
  note_languages();
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

void ReportIndex::note_languages() {
  for (const FailureRecord& failure : report_.failures) {
    python_ = python_ || !failure.python.empty();
    for (const PythonFrame& frame : failure.python)
      torch_ = torch_ || frame.file.find("/torch/") != std::string::npos;
  }
  for (const ObjectRecord& object : report_.objects) {
    torch_ = torch_ || basename_of(object.path).starts_with("libtorch") ||
             object.path.find("/torch/") != std::string::npos;
  }
}

bool ReportIndex::loaded(std::uint64_t object, std::optional<unsigned> device) const {
  return loaded_.count({object, device}) != 0;
}

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
  const auto in = [&](const auto& map, const auto& key) -> const GapRecord* {
    const auto found = map.find(key);
    const GapRecord* row = found == map.end() ? nullptr : nearest(found->second, device, line);
    if (row == nullptr) return nullptr;
    const auto fullest = fullest_.find({row->object, row->offset, row->device});
    return fullest == fullest_.end() || fullest->second->need != row->need ? row : fullest->second;
  };
  if (const GapRecord* exact = in(gaps_at_, std::pair(object, offset))) return exact;
  return offset ? in(gaps_at_, std::pair(object, Id())) : in(gaps_, object);
}

}  // namespace kshim::analysis

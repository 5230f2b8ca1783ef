// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/report/report_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "analyzer/data/knowledge.h"
#include "kshim/image/arch.h"
#include "kshim/image/compute_capability.h"

namespace kshim::analysis {
namespace {

/// References of one kind of record to another: how many lead nowhere, and how many to what comes later.
class References {
 public:
  References(Report& report, std::string_view what) : report_(report), what_(what) {}
  void add(std::uint64_t id, std::uint32_t line) { lines_.emplace(id, line); }
  void check(std::optional<std::uint64_t> id, const Record& from, std::string_view who) {
    if (!id) return;
    const auto at = lines_.find(*id);
    if (at != lines_.end() && at->second <= from.line) return;
    Wrong& wrong = at == lines_.end() ? nowhere_ : later_;
    if (wrong.count++ == 0) {
      wrong.line = from.line;
      wrong.text = fmt::format("`{}` refers to {} {}", who, what_, *id);
    }
  }
  void note(bool whole) {
    if (whole) say(nowhere_, ", which is not there");
    say(later_, ", which comes later: the lines are not in their order");
  }

 private:
  struct Wrong {
    std::uint64_t count = 0;
    std::uint32_t line = 0;
    std::string text;
  };
  void say(const Wrong& wrong, std::string_view how) {
    if (wrong.count == 0) return;
    const std::string more = wrong.count > 1 ? fmt::format(" ({} more like this)", wrong.count - 1) : "";
    report_.notes.push_back({wrong.line, fmt::format("{}{}{}", wrong.text, how, more)});
  }
  Report& report_;
  std::string_view what_;
  std::unordered_map<std::uint64_t, std::uint32_t> lines_;
  Wrong nowhere_, later_;
};

void check_references(Report& report, Whole whole) {
  References objects(report, "object");
  References modules(report, "module");
  References devices(report, "GPU");
  for (const ObjectRecord& row : report.objects) objects.add(row.id, row.line);
  for (const ModuleRecord& row : report.modules) modules.add(row.id, row.line);
  for (const DeviceRecord& row : report.devices) devices.add(row.ordinal, row.line);
  for (const ModuleRecord& row : report.modules) {
    objects.check(row.object, row, "module");
    devices.check(row.device, row, "module");
  }
  for (const FailureRecord& row : report.failures) {
    objects.check(row.object, row, "failure");
    modules.check(row.module, row, "failure");
    // Asking for a GPU that is not there is a failure of its own.
    if (row.stage != "init" && row.stage != "other") devices.check(row.device, row, "failure");
  }
  for (const ReadRecord& row : report.reads) objects.check(row.object, row, "read");
  for (const GapRecord& row : report.gaps) {
    objects.check(row.object, row, "gap");
    devices.check(row.device, row, "gap");
  }
  for (const PackageRecord& row : report.packages) objects.check(row.object, row, "package");
  for (const CoverageRecord& row : report.coverage) {
    objects.check(row.object, row, "coverage");
    modules.check(row.module, row, "coverage");
  }
  objects.note(whole.objects);
  modules.note(whole.modules);
  devices.note(whole.devices);
}

// What the tables do not know may be newer than this kshim; it is judged by its number all the same.
void check_devices(Report& report) {
  for (const DeviceRecord& row : report.devices) {
    const auto arch = image::parse_arch(row.compute_capability);
    if (!arch || arch->suffix != image::Suffix::none) {
      report.notes.push_back({row.line, fmt::format("GPU {}: `{}` is no compute capability", row.ordinal,
                                                    row.compute_capability.substr(0, 40))});
    } else if (image::find_compute_capability(arch->cc) == nullptr) {
      report.notes.push_back(
          {row.line,
           fmt::format(
               "GPU {}: this kshim knows no GPU of compute capability {}, and judges it by the number",
               row.ordinal, image::to_name(arch->cc).view())});
    }
  }
}

void check_driver(Report& report) {
  if (!report.driver || report.driver->cuda_version.empty()) return;
  if (const auto cuda = image::parse_version(report.driver->cuda_version)) {
    if (std::string said = analysis::newer_cuda_than_known(*cuda); !said.empty())
      report.notes.push_back({report.driver->line, "the driver: " + said});
    return;
  }
  report.notes.push_back({report.driver->line, fmt::format("`{}` is no CUDA version of a driver",
                                                           report.driver->cuda_version.substr(0, 40))});
}

// Of loads that failed, equal ones have one record, and of those that succeed the first 4096 have one
// (shim/track/modules.cpp): with neither, as many records as loads.
std::uint64_t loads_missing(const Report& report) {
  constexpr std::size_t kMostWritten = 4096;
  const bool failed = std::any_of(report.modules.begin(), report.modules.end(),
                                  [](const ModuleRecord& row) { return row.result != 0; });
  if (failed || report.modules.size() >= kMostWritten || report.modules.size() >= report.end->modules)
    return 0;
  return report.end->modules - report.modules.size();
}

// Fewer failures or loads than the end counts, with nothing dropped: lines were damaged or taken out. Lines
// that could not be read have a note of their own.
void check_end(Report& report, Whole whole) {
  if (!report.end || report.end->dropped != 0) return;
  const auto check = [&](bool all_kept, std::uint64_t missing, std::string_view what, std::uint64_t counted,
                         std::size_t there) {
    if (!all_kept || missing == 0) return;
    if (report.missing == 0)
      report.notes.push_back(
          {report.end->line, fmt::format("it counts {} {}, {} are there", counted, what, there)});
    report.missing = std::max(report.missing, missing);
  };
  const std::uint64_t failures = report.failures.size();
  check(whole.modules, loads_missing(report), "loads", report.end->modules, report.modules.size());
  check(whole.failures, report.end->failures - std::min(failures, report.end->failures), "failures",
        report.end->failures, report.failures.size());
}

}  // namespace

void check_report(Report& report, Whole whole) {
  check_references(report, whole);
  check_devices(report);
  check_driver(report);
  check_end(report, whole);
}

}  // namespace kshim::analysis

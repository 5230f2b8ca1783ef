// SPDX-License-Identifier: Apache-2.0
// What was asked about a GPU that is not there and cannot be answered: the file is gone, and the report does
// not say what is in it.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/advice_input.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::analysis {
namespace {

constexpr double kSure = 0.9;
constexpr std::size_t kNamed = 8;

/// The objects of the report that hold device code, by what refers to them.
std::set<std::uint64_t> with_device_code(const Report& report) {
  std::set<std::uint64_t> out;
  for (const ObjectRecord& row : report.objects) {
    if (row.fatbins.value_or(0) != 0) out.insert(row.id);
  }
  for (const ModuleRecord& row : report.modules) {
    if (row.object) out.insert(*row.object);
  }
  for (const GapRecord& row : report.gaps) {
    if (row.object) out.insert(*row.object);
  }
  return out;
}

// With KSHIM_TARGET the shim itself has looked at everything that was registered: no gap record is an answer.
bool asked_the_shim(const Report& report, image::ComputeCapability cc) {
  const auto asked = report.process.env.find("KSHIM_TARGET");
  if (asked == report.process.env.end()) return false;
  std::string_view rest = asked->second;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(",; "), rest.size());
    const auto arch = image::parse_arch(rest.substr(0, end));
    if (arch && arch->cc == cc) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

Finding finding_for(const std::string& need, const std::vector<std::string>& paths, bool assumed) {
  Finding out;
  out.cause = Cause::unknown;
  out.severity = Severity::warning;
  out.confidence = kSure;
  out.need = need;
  const auto arch = image::parse_arch(need);
  out.devices = {target_device(arch ? std::optional(arch->cc) : std::nullopt)};
  if (assumed) out.devices.front().kind = Device::Kind::assumed;
  out.headline = fmt::format(
      "whether this runs on {} cannot be told: files that it loaded are not on this machine, and the report "
      "does "
      "not say what is in them",
      need);
  AdviceInput at;
  at.need = need;
  at.unread = paths;
  out.about = std::make_shared<const AdviceInput>(std::move(at));
  return out;
}

}  // namespace

std::vector<Finding> unjudged(const Scene& scene, const std::vector<image::ComputeCapability>& wanted,
                              const std::set<std::pair<std::string, std::string>>& told) {
  std::vector<Finding> out;
  if (wanted.empty()) return out;
  const std::set<std::uint64_t> holding = with_device_code(scene.report);
  for (const image::ComputeCapability cc : wanted) {
    if (asked_the_shim(scene.report, cc)) continue;
    const std::string need(image::to_name(image::ImageKind::cubin, {cc, image::Suffix::none}).view());
    std::vector<const ObjectRecord*> gone;
    for (const ObjectRecord& row : scene.report.objects) {
      const bool listed = row.images && !row.images->empty();
      if (listed || row.fatbins == 0U || holding.count(row.id) == 0) continue;
      if (told.count({row.path, need}) == 0 && scene.files.find(row) == nullptr) gone.push_back(&row);
    }
    if (gone.empty()) continue;
    std::vector<std::string> paths;
    for (const ObjectRecord* row : gone) paths.push_back(row->path);
    Finding finding = finding_for(need, paths, scene.options.assume_cc.has_value());
    for (std::size_t i = 0; i < gone.size() && i < kNamed; ++i) {
      finding.evidence.push_back({EvidenceId::unread_file,
                                  fmt::format("{} {}.", gone[i]->path, scene.files.why_not(*gone[i])),
                                  location(scene.report, gone[i]->line),
                                  {{"file", gone[i]->path}}});
    }
    if (gone.size() > kNamed) {
      finding.evidence.push_back(
          {EvidenceId::more, fmt::format("So it is with {}.", counted(gone.size() - kNamed, "more file")),
           location(scene.report, gone[kNamed]->line)});
    }
    finding.count = gone.size();
    finding.unread = std::move(paths);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace kshim::analysis

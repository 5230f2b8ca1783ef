// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/scan_groups.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "analyzer/core/text.h"

namespace kshim::scan {
namespace {

using analysis::Cause;
using analysis::Finding;
using analysis::Severity;

constexpr std::size_t kByThemselves = 4;

std::string target_name(image::Arch target) {
  return std::string(image::to_name(image::ImageKind::cubin, {target.cc, image::Suffix::none}).view());
}

bool runs(const TargetVerdict& verdict) { return verdict.sass + verdict.jit != 0; }

}  // namespace

LooseFindings::Group& LooseFindings::group_of(const Finding& finding) {
  return groups_[fmt::format("{} {} {} {} {}", static_cast<int>(finding.cause),
                             static_cast<int>(finding.severity), finding.need, finding.package.text(),
                             analysis::join(finding.have, " "))];
}

void LooseFindings::add(Finding finding) {
  Group& group = group_of(finding);
  if (group.first.size() < kByThemselves) {
    group.first.push_back(std::move(finding));
  } else {
    group.others.push_back(std::move(finding.object));
  }
}

void LooseFindings::add(LooseFindings other) {
  for (auto& [key, group] : other.groups_) {
    Group& own = groups_[key];
    for (Finding& finding : group.first) add(std::move(finding));
    std::move(group.others.begin(), group.others.end(), std::back_inserter(own.others));
  }
}

std::vector<Finding> LooseFindings::take() && {
  std::vector<Finding> out;
  for (auto& [key, group] : groups_) {
    if (group.others.empty()) {
      std::move(group.first.begin(), group.first.end(), std::back_inserter(out));
      continue;
    }
    Finding finding = std::move(group.first.front());
    for (std::size_t i = 1; i < group.first.size(); ++i)
      group.others.push_back(std::move(group.first[i].object));
    finding.other_objects = std::move(group.others);
    std::sort(finding.other_objects.begin(), finding.other_objects.end());
    finding.count = 1 + finding.other_objects.size();
    const std::string files = fmt::format("{} and {}", analysis::basename_of(finding.object),
                                          analysis::counted(finding.other_objects.size(), "other file"));
    finding.headline =
        finding.need.empty() || finding.have.empty()
            ? fmt::format(
                  "{}: {}", files,
                  finding.headline.empty() ? std::string(row_of(finding.cause).headline) : finding.headline)
            : fmt::format("{} have no code for {}: built for {}", files, finding.need,
                          analysis::enumerate(finding.have));
    out.push_back(std::move(finding));
  }
  return out;
}

void excuse_files_for_other_gpus(Scan& scan) {
  std::set<std::pair<std::string, std::string>> served;  // package, target
  std::map<std::string, ScannedObject*> objects;
  for (ScannedObject& object : scan.objects) {
    objects.emplace(object.name(), &object);
    if (object.package.empty()) continue;
    for (const TargetVerdict& verdict : object.targets)
      if (runs(verdict)) served.emplace(object.package.label(), target_name(verdict.target));
  }
  for (Finding& finding : scan.findings) {
    if (finding.cause != Cause::arch_specific_image || finding.severity != Severity::error) continue;
    if (!served.contains({finding.package.label(), finding.need})) continue;
    finding.severity = Severity::info;
    finding.about.reset();
    finding.remarks.push_back(fmt::format("Other files of {} have code for {}; this one is for other GPUs.",
                                          finding.package.label(), finding.need));
    finding.other_objects.push_back(finding.object);
    for (const std::string& name : finding.other_objects) {
      const auto at = objects.find(name);
      if (at == objects.end()) continue;
      for (TargetVerdict& verdict : at->second->targets)
        verdict.picks = verdict.picks || target_name(verdict.target) == finding.need;
    }
    finding.other_objects.pop_back();
  }
}

}  // namespace kshim::scan

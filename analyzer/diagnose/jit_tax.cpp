// SPDX-License-Identifier: Apache-2.0
// jit-tax: what works, at the price of compiling PTX at every first load; by the file that it lies in.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/report_findings.h"

namespace kshim::analysis {
namespace {

constexpr double kNoticeable = 1000;  // milliseconds
constexpr std::size_t kNamed = 8;     // files; the rest is one sum
constexpr double kSelectedByRule = 0.9;

struct Share {
  const ModuleRecord* first = nullptr;
  std::uint64_t modules = 0;
  double milliseconds = 0;
  std::set<std::string> ptx;  ///< compute_75 ...
};

// Loads by file; what has none, from memory, together.
std::vector<Share> shares_of(const Scene& scene) {
  std::map<std::uint64_t, Share> by_object;
  for (const ModuleRecord& module : scene.report.modules) {
    if (module.jit != true || module.result != 0) continue;
    Share& share = by_object[module.object.value_or(0)];
    if (share.first == nullptr) share.first = &module;
    ++share.modules;
    share.milliseconds += module.ms;
    if (!module.selected.empty()) share.ptx.insert(module.selected);
  }
  std::vector<Share> out;
  for (auto& [object, share] : by_object) out.push_back(std::move(share));
  std::stable_sort(out.begin(), out.end(),
                   [](const Share& a, const Share& b) { return a.milliseconds > b.milliseconds; });
  return out;
}

std::string took(const Scene& scene, double milliseconds) {
  const bool simulated = scene.report.driver && scene.report.driver->simulated;
  if (simulated) return ": on a real GPU that takes time";
  return milliseconds < kNoticeable
             ? fmt::format(", which took {:.0f} ms in this process", milliseconds)
             : fmt::format(", which took {:.1f} s in this process", milliseconds / 1000);
}

Finding tax_of(const Scene& scene, const Share& share, Severity severity) {
  Subject subject;
  subject.object = scene.index.object(share.first->object);
  subject.module = share.first;
  subject.device = scene.index.device(share.first->device);
  subject.images = find_images({subject.object, share.first->offset, nullptr, {}}, scene.files);
  subject.facts.device = cc_of(scene, subject.device);
  subject.facts.driver = driver_of(scene);
  subject.facts.switches = switches_of(scene.report);
  subject.facts.images = subject.images.images;
  subject.facts.scope = subject.images.scope;
  subject.facts.loose = subject.object == nullptr;
  Finding finding;
  finding.cause = Cause::jit_tax;
  finding.severity = severity;
  finding.confidence = kSelectedByRule;
  finding.count = share.modules;
  if (subject.object != nullptr) {
    finding.object = subject.object->path;
    finding.build_id = subject.object->build_id;
  }
  const std::string who =
      subject.object != nullptr ? std::string(basename_of(finding.object)) : "code from memory";
  finding.headline = fmt::format("{}: {} compiled from PTX at load", who, counted(share.modules, "module"));
  if (auto device = device_of(scene, subject.device)) finding.devices.push_back(std::move(*device));
  describe_images(subject, finding);
  finding.evidence.push_back(
      {EvidenceId::compiled_modules,
       fmt::format(
           "The driver compiled {} of {} from PTX{}{}.", counted(share.modules, "module"), who,
           share.ptx.empty() ? "" : fmt::format(" ({})", join({share.ptx.begin(), share.ptx.end()}, ", ")),
           took(scene, share.milliseconds)),
       location(scene.report, share.first->line),
       {{"modules", std::to_string(share.modules)}}});
  set_advice_input(scene, subject, finding);
  return finding;
}

}  // namespace

std::vector<Finding> jit_taxes(const Scene& scene) {
  std::vector<Finding> out;
  std::vector<Share> shares = shares_of(scene);
  double total = 0;
  for (const Share& share : shares) total += share.milliseconds;
  const Severity severity = total > kNoticeable ? Severity::warning : Severity::info;
  for (std::size_t i = 0; i < shares.size() && i < kNamed; ++i)
    out.push_back(tax_of(scene, shares[i], severity));
  if (shares.size() > kNamed) {
    std::uint64_t modules = 0;
    double rest = 0;
    for (std::size_t i = kNamed; i < shares.size(); ++i) {
      modules += shares[i].modules;
      rest += shares[i].milliseconds;
    }
    out.back().evidence.push_back(
        {EvidenceId::more,
         fmt::format("So were {} of {}{}.", counted(modules, "module"),
                     counted(shares.size() - kNamed, "other file"), took(scene, rest)),
         location(scene.report, shares[kNamed].first->line),
         {{"count", std::to_string(shares.size() - kNamed)}}});
  }
  return out;
}

}  // namespace kshim::analysis

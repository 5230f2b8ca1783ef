// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/scan/render.h"

#include <algorithm>
#include <set>

#include "analyzer/render/finding_text.h"
#include "analyzer/render/fleet_text.h"
#include "analyzer/render/github.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/junit.h"
#include "analyzer/render/sarif.h"

namespace kshim::scan {
namespace {

/// The findings with the file that is on disk, and the member inside it.
std::vector<analysis::PlacedFinding> placed(const Scan& scan, const analysis::SourceRoot& root) {
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<analysis::PlacedFinding> out =
      analysis::placed(scan.findings, root, scan.objects.empty() ? std::string() : scan.objects.front().path);
  for (analysis::PlacedFinding& placed : out) {
    const auto found = objects.find(placed.finding.object);
    if (found != objects.end()) placed.place = {found->second->path, 0, found->second->member};
  }
  return out;
}

}  // namespace

std::string render_sarif(const Scan& scan, analysis::Format, const analysis::RenderOptions&) {
  analysis::SarifRun run{.id = "kshim-scan/", .findings = {}, .notes = {}, .failures = {}};
  run.findings = placed(scan, run.root);
  (scan.named_unread ? run.failures : run.notes) = scan.notes;
  return analysis::sarif_log(run);
}

std::string render_github(const Scan& scan, analysis::Format, const analysis::RenderOptions&) {
  const auto root = analysis::SourceRoot::of_process();
  return analysis::github_commands(placed(scan, root), root, {}, scan.notes);
}

std::string render(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options) {
  switch (format) {
#define KSHIM_FORMAT(id, writer) \
  case analysis::Format::id:     \
    return render_##writer(scan, format, options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT
  }
  return {};
}

namespace {

using analysis::Json;
using analysis::json_list;
using analysis::text_or_null;

Json to_json(const analysis::ImageCount& image) {
  const image::Candidate& candidate = image.candidate;
  return {{"kind", image::to_name(candidate.kind)},
          {"arch", image::to_name(candidate.kind, candidate.arch).view()},
          {"isa", analysis::version_or_null(candidate.isa)},
          {"count", image.count},
          {"bytes", image.bytes},
          {"stored", image.stored}};
}

Json known_or_null(std::uint32_t value) {
  return value != image::KernelInfo::kUnknown ? Json(value) : Json(nullptr);
}

Json to_json(const KernelNeeds& image) {
  return {{"arch", image.arch},
          {"registers", known_or_null(image.registers)},
          {"shared_bytes", known_or_null(image.shared_bytes)},
          {"local_bytes", known_or_null(image.local_bytes)},
          {"max_threads", known_or_null(image.max_threads)},
          {"code_bytes", image.code_bytes}};
}

Json to_json(const ScannedKernel& kernel) {
  return {{"name", kernel.name},
          {"demangled", kernel.demangled},
          {"archs", kernel.archs()},
          {"images", json_list(kernel.images, [](const KernelNeeds& image) { return to_json(image); })}};
}

Json to_json(const TargetVerdict& verdict) {
  return {{"target", image::to_name(image::ImageKind::cubin, verdict.target).view()},
          {"sass", verdict.sass},
          {"jit", verdict.jit},
          {"lacking", verdict.lacking}};
}

Json to_json(const Expected& expected) {
  return {{"list", text_or_null(expected.list)},
          {"source", expected.source},
          {"reason", text_or_null(expected.reason)},
          {"skipped", expected.skipped},
          {"missing", expected.missing},
          {"surplus", expected.surplus}};
}

Json to_json(const ModuleSize& module) {
  return {{"offset", module.offset},
          {"images", module.images},
          {"stored", module.stored},
          {"bytes", module.bytes},
          {"kernel", text_or_null(module.kernel)}};
}

Json to_json(const ScannedObject& object, bool sizes) {
  Json out = {{"path", object.path},
              {"member", text_or_null(object.member)},
              {"build_id", text_or_null(object.build_id)},
              {"fatbins", object.fatbins}};
  out["images"] = json_list(object.images, [](const analysis::ImageCount& image) { return to_json(image); });
  if (object.kernels) {
    out["kernels"] = json_list(*object.kernels, [](const ScannedKernel& kernel) { return to_json(kernel); });
  }
  out["format"] = text_or_null(object.format);
  out["package"] = text_or_null(object.package.label());
  out["package_info"] = package_json(object.package);
  out["bytes"] = object.bytes;
  out["modules"] = object.modules;
  out["targets"] = json_list(object.targets, [](const TargetVerdict& verdict) { return to_json(verdict); });
  if (object.expected) out["expected"] = to_json(*object.expected);
  if (sizes)
    out["largest_modules"] =
        json_list(object.largest, [](const ModuleSize& module) { return to_json(module); });
  return out;
}

}  // namespace

std::string render_json(const Scan& scan, analysis::Format, const analysis::RenderOptions&) {
  Json out = {{"schema", "kshim-scan/1"}};
  out["objects"] =
      json_list(scan.objects, [&](const ScannedObject& object) { return to_json(object, scan.sizes); });
  out["findings"] =
      json_list(scan.findings, [](const analysis::Finding& finding) { return analysis::to_json(finding); });
  out["targets"] = json_list(scan.targets, [](const image::Arch& target) {
    return Json(image::to_name(image::ImageKind::cubin, target).view());
  });
  out["driver"] = analysis::version_or_null(scan.driver);
  out["totals"] = {{"files", scan.files}, {"bytes", scan.bytes}, {"duplicates", scan.duplicates}};
  out["images"] = json_list(scan.images, [](const ScannedImage& image) {
    return Json{{"path", image.path},
                {"name", text_or_null(image.name)},
                {"platform", text_or_null(image.platform)},
                {"base", text_or_null(image.base)},
                {"layers", image.layers}};
  });
  if (!scan.budget.empty())
    out["budget"] = json_list(scan.budget, [](const BudgetUse& use) {
      return Json{{"name", use.name}, {"of", use.of}, {"bytes", use.bytes}, {"limit", use.limit}};
    });
  out["notes"] = scan.notes;
  for (const std::string& note : scan.newer) out["notes"].push_back(note);
  out["fleet"] =
      json_list(scan.fleet, [](const analysis::FleetPlan& plan) { return analysis::to_json(plan); });
  analysis::add_knowledge(out);
  return analysis::dumped(out);
}

namespace {

using analysis::Finding;
using analysis::Severity;
using analysis::TestCase;
using analysis::TestSuite;

constexpr const char* kWhole = "device code";
constexpr const char* kExpected = "expected";

TestCase passed(const std::string& group, const std::string& name) {
  return {.group = group, .name = name, .type = {}, .message = {}, .text = {}};
}

using Findings = std::vector<const Finding*>;

/// Cases of a scan. A finding is told in full in the first case that fails for it, and by its title in the
/// others: those of its other GPUs and files.
class Cases {
 public:
  void add(const Scan& scan, const ScannedObject& object, const Findings& findings, TestSuite& suite) {
    group_ = object.name();
    Findings unmet;
    Findings rest;
    for (const Finding* finding : findings) {
      if (finding->cause == analysis::Cause::unmet_expectation)
        unmet.push_back(finding);
      else if (analysis::targets_of(*finding).empty())
        rest.push_back(finding);
    }
    if (object.expected || !unmet.empty()) suite.cases.push_back(judged(unmet, kExpected));
    for (const image::Arch target : scan.targets) {
      Findings of_target;
      for (const Finding* finding : findings)
        if (std::any_of(finding->devices.begin(), finding->devices.end(),
                        [&](const analysis::Device& device) { return device.cc == target.cc; }))
          of_target.push_back(finding);
      suite.cases.push_back(
          judged(of_target, std::string(image::to_name(image::ImageKind::cubin, target).view())));
    }
    if ((scan.targets.empty() && !object.expected && unmet.empty()) || !rest.empty())
      suite.cases.push_back(judged(rest, kWhole));
  }

  bool told(const Finding& finding) const { return told_.contains(&finding); }

 private:
  // Several findings of one case: the worst, which comes first, decides; all are told.
  TestCase judged(const Findings& findings, const std::string& name) {
    TestCase out = passed(group_, name);
    for (const Finding* finding : findings) {
      const bool again = !told_.insert(finding).second;
      TestCase one = analysis::test_case(*finding, group_);
      if (again) one.text = one.message;
      if (finding == findings.front()) {
        one.name = name;
        out = std::move(one);
      } else {
        out.text += '\n' + one.text;
      }
    }
    return out;
  }

  std::string group_;
  std::set<const Finding*> told_;
};

}  // namespace

std::string render_junit(const Scan& scan, analysis::Format, const analysis::RenderOptions&) {
  std::unordered_map<std::string, Findings> findings;
  Cases cases;
  for (const Finding& finding : scan.findings) {
    findings[finding.object].push_back(&finding);
    for (const std::string& object : finding.other_objects) findings[object].push_back(&finding);
  }
  std::vector<TestSuite> suites;
  std::unordered_map<std::string, std::size_t> suite_of;
  for (const ScannedObject& object : scan.objects) {
    const auto [at, added] = suite_of.try_emplace(object.path, suites.size());
    if (added) suites.push_back({.name = object.path, .cases = {}});
    const auto own = findings.find(object.name());
    cases.add(scan, object, own == findings.end() ? Findings() : own->second, suites[at->second]);
  }
  TestSuite others{.name = "kshim", .cases = {}};
  for (const Finding& finding : scan.findings)
    if (!cases.told(finding)) others.cases.push_back(analysis::test_case(finding, "kshim"));
  for (const std::string& note : scan.notes) {
    TestCase unread = passed("kshim", "readable: " + note.substr(0, note.find(": ")));
    unread.result = scan.named_unread ? analysis::TestResult::broken : analysis::TestResult::skipped;
    if (scan.named_unread) unread.type = "unread";
    unread.message = note;
    others.cases.push_back(std::move(unread));
  }
  if (!others.cases.empty()) suites.push_back(std::move(others));
  return analysis::junit_xml("kshim scan", suites);
}

}  // namespace kshim::scan

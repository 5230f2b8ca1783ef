// SPDX-License-Identifier: Apache-2.0
// The scan as JSON, schema kshim-scan/1. Keys stand in the order of the contract, additions behind them.
#include <string_view>

#include "analyzer/render/fleet_text.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/scan/render.h"
#include "kshim/image/cubin.h"

namespace kshim::scan {
namespace {

using analysis::Json;
using analysis::json_list;
using analysis::text_or_null;

Json version_or_null(image::Version version) {
  return version.known() ? Json(image::to_name(version).view()) : Json(nullptr);
}

Json to_json(const analysis::ImageCount& image) {
  const image::Candidate& candidate = image.candidate;
  return {{"kind", image::to_name(candidate.kind)},
          {"arch", image::to_name(candidate.kind, candidate.arch).view()},
          {"isa", version_or_null(candidate.isa)},
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

std::string render_json(const Scan& scan) {
  Json out = {{"schema", "kshim-scan/1"}};
  out["objects"] =
      json_list(scan.objects, [&](const ScannedObject& object) { return to_json(object, scan.sizes); });
  out["findings"] =
      json_list(scan.findings, [](const analysis::Finding& finding) { return analysis::to_json(finding); });
  out["targets"] = json_list(scan.targets, [](const image::Arch& target) {
    return Json(image::to_name(image::ImageKind::cubin, target).view());
  });
  out["driver"] = version_or_null(scan.driver);
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

}  // namespace kshim::scan

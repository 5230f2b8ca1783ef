// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/json_finding.h"

#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/formats.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"

namespace kshim::analysis {
namespace {

Json to_json(const Place& place) {
  Json out = {{"file", text_or_null(place.file)},
              {"line", place.line == 0 ? Json(nullptr) : Json(place.line)},
              {"function", text_or_null(place.function)},
              {"language", place.python ? "python" : "native"}};
  if (!place.python) {
    out["object"] = text_or_null(place.object);
    out["offset"] = place.offset;
  }
  return out;
}

Json to_json(const ImageVerdict& image) {
  return {{"kind", image.kind},   {"arch", image.arch}, {"isa", text_or_null(image.isa)},
          {"count", image.count}, {"fits", image.fits}, {"reason", image.reason}};
}

Json to_json(const Fix& fix) {
  Json arguments = Json::object();
  for (const auto& [name, value] : fix.arguments) arguments[std::string(name)] = value;
  return {{"kind", to_name(fix.kind)},          {"title", fix.title},
          {"commands", fix.commands},           {"why", text_or_null(fix.why)},
          {"caveat", text_or_null(fix.caveat)}, {"id", fix.id.empty() ? Json(nullptr) : Json(fix.id)},
          {"arguments", std::move(arguments)}};
}

Json to_json(const SeenIn& seen) {
  return {{"host", text_or_null(seen.host)},
          {"rank", value_or_null(seen.rank)},
          {"pid", seen.pid},
          {"run", text_or_null(seen.run)},
          {"count", seen.count}};
}

// A sentence that ends with the report line that proves it.
std::string sentence(const Evidence& evidence) {
  if (evidence.at.empty()) return evidence.text;
  return evidence.text + " (" + evidence.at.text() + ")";
}

Json to_json(const Device& device) {
  static constexpr const char* kKinds[] = {"present", "assumed", "target", "named"};
  return {{"kind", kKinds[static_cast<std::size_t>(device.kind)]},
          {"ordinal", value_or_null(device.ordinal)},
          {"name", text_or_null(device.name)},
          {"compute_capability", device.cc ? Json(image::to_name(*device.cc).view()) : Json(nullptr)},
          {"simulated", device.simulated}};
}

Json proof(const Evidence& evidence) {
  Json arguments = Json::object();
  for (const auto& [name, value] : evidence.arguments) arguments[std::string(name)] = value;
  return {{"id", to_name(evidence.id)},
          {"arguments", std::move(arguments)},
          {"file", text_or_null(evidence.at.file)},
          {"line", evidence.at.line == 0 ? Json(nullptr) : Json(evidence.at.line)}};
}

}  // namespace

Json package_json(const PackageName& package) {
  if (package.empty()) return nullptr;
  return {{"name", text_or_null(package.name)},
          {"version", text_or_null(package.version)},
          {"installer", text_or_null(package.installer)}};
}

Json to_json(const Finding& finding) {
  Json out = {{"cause", row_of(finding.cause).name},
              {"severity", to_name(finding.severity)},
              {"confidence", finding.confidence},
              {"code", value_or_null(finding.code)},
              {"code_name", text_or_null(finding.code_name)},
              {"headline", headline_of(finding)},
              {"object", text_or_null(finding.object)},
              {"package", text_or_null(finding.package.text())},
              {"kernels", finding.kernels},
              {"kernels_complete", finding.kernels_complete},
              {"kernels_total", finding.kernels_total == 0 ? Json(nullptr) : Json(finding.kernels_total)},
              {"have", finding.have},
              {"need", text_or_null(finding.need)}};
  if (!finding.other_objects.empty()) out["other_objects"] = finding.other_objects;
  out["images"] = json_list(finding.images, [](const ImageVerdict& image) { return to_json(image); });
  out["devices"] = json_list(finding.devices, [](const Device& device) { return text_of(device); });
  out["count"] = finding.count;
  out["failed_call"] = text_or_null(finding.failed_call);
  out["failed_kernel"] = text_or_null(finding.failed_kernel);
  if (const Place& kernel = finding.kernel_source; !kernel.file.empty() && kernel.line != 0)
    out["kernel_source"] = {{"file", kernel.file}, {"line", kernel.line}};
  out["evidence"] = json_list(finding.evidence, sentence);
  out["where"] = finding.where.empty() ? Json(nullptr) : to_json(finding.where.front());
  out["stack"] = json_list(finding.where, [](const Place& place) { return to_json(place); });
  out["fixes"] = json_list(finding.fixes, [](const Fix& fix) { return to_json(fix); });
  out["dead_ends"] = json_list(finding.dead_ends, [](const DeadEnd& end) {
    return Json{{"action", end.action}, {"why", end.why}};
  });
  out["remarks"] = finding.remarks;
  out["build_id"] = text_or_null(finding.build_id);
  out["seen_in"] = text_or_null(finding.seen_in);
  out["processes"] = json_list(finding.processes, [](const SeenIn& seen) { return to_json(seen); });
  out["processes_total"] = finding.processes_total;
  out["package_info"] = package_json(finding.package);
  out["device"] = finding.devices.empty() ? Json(nullptr) : to_json(finding.devices.front());
  out["gpus"] = json_list(finding.devices, [](const Device& device) { return to_json(device); });
  out["hypothetical"] = is_hypothetical(finding);
  out["evidence_items"] = json_list(finding.evidence, proof);
  return out;
}

std::string dumped(const Json& json) {
  std::string text = json.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
  // `##[` in a log is a command to GitHub's runner, wherever in a line it stands.
  for (std::size_t at = text.find("##["); at != std::string::npos; at = text.find("##[", at))
    text.replace(at, 1, "\\u0023");
  return text;
}

void add_knowledge(Json& out) {
  out["knowledge"] = knowledge_date();
  out["knowledge_files"] = knowledge_files();
}

namespace {

Json to_json(const DeviceSummary& device) {
  return {{"host", text_or_null(device.host)},
          {"ordinal", device.ordinal},
          {"name", text_or_null(device.name)},
          {"compute_capability", device.cc ? Json(image::to_name(*device.cc).view()) : Json(nullptr)},
          {"uuid", text_or_null(device.uuid)},
          {"pci", text_or_null(device.pci)},
          {"driver_cuda", text_or_null(device.driver_cuda)},
          {"kernel_module", text_or_null(device.kernel_module)},
          {"simulated", device.simulated},
          {"findings", device.findings}};
}

Json to_json(const ProcessSummary& process, bool full) {
  return {{"report", process.report},
          {"host", text_or_null(process.host)},
          {"pid", process.pid},
          {"rank", value_or_null(process.rank)},
          {"exe", text_or_null(process.exe)},
          {"argv", full ? process.argv : program_and_script(process.argv)},
          {"failures", process.failures},
          {"modules", process.modules},
          {"complete", process.complete},
          {"lost", process.lost},
          {"run", text_or_null(process.run)}};
}

Json to_json(const RunSummary& run) {
  return {{"run", text_or_null(run.id)}, {"processes", run.processes}, {"hosts", run.hosts},
          {"ranks", run.ranks},          {"failed", run.failed},       {"incomplete", run.incomplete}};
}

}  // namespace

std::string render_json(const Analysis& analysis, Format, const RenderOptions& options) {
  Json out = {{"schema", "kshim-analysis/1"}, {"verdict", to_name(analysis.verdict)}};
  out["devices"] = json_list(analysis.devices, [](const DeviceSummary& device) { return to_json(device); });
  out["processes"] = json_list(analysis.processes,
                               [&](const ProcessSummary& process) { return to_json(process, options.full); });
  out["findings"] = json_list(analysis.findings, [&](const Finding& finding) {
    Json row = to_json(finding);
    if (options.verbose)
      row["failures"] = json_list(finding.failures, [](const ReportLine& at) { return at.text(); });
    return row;
  });
  out["notes"] = analysis.notes;
  out["blind"] = json_list(analysis.blind, [](const BlindProcess& process) {
    return Json{{"pid", process.pid}, {"exe", text_or_null(process.exe)}, {"reason", process.reason}};
  });
  out["runs"] = json_list(analysis.runs, [](const RunSummary& run) { return to_json(run); });
  out["fleet"] = json_list(analysis.fleet, [](const FleetPlan& plan) { return to_json(plan); });
  out["exit_status"] = value_or_null(analysis.exit_status);
  out["term_signal"] = value_or_null(analysis.term_signal);
  add_knowledge(out);
  return dumped(out);
}

}  // namespace kshim::analysis

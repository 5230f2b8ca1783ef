// SPDX-License-Identifier: Apache-2.0
// The analysis as JSON, schema kshim-analysis/1. Keys stand in the order of the contract, additions behind
// them. What is not known is null; lists are never null.
#include <nlohmann/json.hpp>

#include "analyzer/render/render.h"

namespace kshim::analysis {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <class Items, class Make>
Json list(const Items& items, Make&& make) {
  Json out = Json::array();
  for (const auto& item : items) out.push_back(make(item));
  return out;
}

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

Json to_json(const ProcessSummary& process) {
  return {{"report", process.report},
          {"host", text_or_null(process.host)},
          {"pid", process.pid},
          {"rank", value_or_null(process.rank)},
          {"exe", text_or_null(process.exe)},
          {"argv", process.argv},
          {"failures", process.failures},
          {"modules", process.modules},
          {"complete", process.complete}};
}

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
  return {{"kind", to_name(fix.kind)},
          {"title", fix.title},
          {"commands", fix.commands},
          {"why", text_or_null(fix.why)},
          {"caveat", text_or_null(fix.caveat)}};
}

// A sentence that ends with the report line that proves it.
std::string sentence(const Evidence& evidence) {
  if (evidence.location.empty()) return evidence.text;
  return evidence.text + " (" + evidence.location + ")";
}

Json to_json(const Finding& finding) {
  Json out = {{"cause", row_of(finding.cause).name},
              {"severity", to_name(finding.severity)},
              {"confidence", finding.confidence},
              {"code", value_or_null(finding.code)},
              {"code_name", text_or_null(finding.code_name)},
              {"headline", finding.headline},
              {"object", text_or_null(finding.object)},
              {"package", text_or_null(finding.package)},
              {"kernels", finding.kernels},
              {"kernels_complete", finding.kernels_complete},
              {"kernels_total", finding.kernels_total == 0 ? Json(nullptr) : Json(finding.kernels_total)},
              {"have", finding.have},
              {"need", text_or_null(finding.need)}};
  out["images"] = list(finding.images, [](const ImageVerdict& image) { return to_json(image); });
  out["devices"] = finding.devices;
  out["count"] = finding.count;
  out["failed_call"] = text_or_null(finding.failed_call);
  out["failed_kernel"] = text_or_null(finding.failed_kernel);
  out["evidence"] = list(finding.evidence, sentence);
  out["where"] = finding.where.empty() ? Json(nullptr) : to_json(finding.where.front());
  out["stack"] = list(finding.where, [](const Place& place) { return to_json(place); });
  out["fixes"] = list(finding.fixes, [](const Fix& fix) { return to_json(fix); });
  out["dead_ends"] = list(finding.dead_ends, [](const DeadEnd& end) {
    return Json{{"action", end.action}, {"why", end.why}};
  });
  out["remarks"] = finding.remarks;
  return out;
}

}  // namespace

std::string render_json(const Analysis& analysis) {
  Json out = {{"schema", "kshim-analysis/1"}, {"verdict", to_name(analysis.verdict)}};
  out["devices"] = list(analysis.devices, [](const DeviceSummary& device) { return to_json(device); });
  out["processes"] = list(analysis.processes, [](const ProcessSummary& process) { return to_json(process); });
  out["findings"] = list(analysis.findings, [](const Finding& finding) { return to_json(finding); });
  out["notes"] = analysis.notes;
  out["blind"] = list(analysis.blind, [](const BlindProcess& process) {
    return Json{{"pid", process.pid}, {"exe", text_or_null(process.exe)}, {"reason", process.reason}};
  });
  out["exit_status"] = value_or_null(analysis.exit_status);
  out["term_signal"] = value_or_null(analysis.term_signal);
  // ASCII only: what a stranger's report holds cannot steer a terminal, and is not lost. Bytes that are no
  // UTF-8 become U+FFFD.
  return out.dump(2, ' ', true, Json::error_handler_t::replace) + '\n';
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// The analysis as JSON, schema kshim-analysis/1. Keys stand in the order of the contract, additions behind
// them. What is not known is null; lists are never null.
#include <nlohmann/json.hpp>

#include "analyzer/render/fleet_text.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"

namespace kshim::analysis {
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

std::string render_json(const Analysis& analysis, const RenderOptions& options) {
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

// SPDX-License-Identifier: Apache-2.0
// THE walk over the foreign strings of an analysis: what makes them harmless or shortens them goes through
// here, so that a new field is forgotten by none or by all.
#pragma once
#include <string>
#include <vector>

#include "analyzer/verbs/analysis.h"
#include "tests/support/command_names.h"

namespace kshim::test {

/// Calls `change(std::string&)` for every string, and `change_command(std::string&)` for every shell command.
template <class Change, class ChangeCommand>
class StringWalk {
 public:
  StringWalk(Change& change, ChangeCommand& change_command)
      : change_(change), change_command_(change_command) {}

  void walk(std::string& text) const { change_(text); }
  void walk(DeviceSummary& device) const {
    each(device.host, device.name, device.uuid, device.pci, device.driver_cuda, device.kernel_module);
  }
  void walk(ProcessSummary& process) const {
    each(process.report, process.run, process.host, process.exe, process.argv);
  }
  void walk(FleetBreak& row) const { each(row.host, row.gpu); }
  void walk(FleetPlan& plan) const { each(plan.object, plan.build_id, plan.breaks); }
  void walk(RunSummary& row) const { each(row.run); }
  void walk(SeenIn& seen) const { each(seen.run, seen.host); }
  void walk(BlindProcess& process) const { each(process.exe, process.reason); }
  void walk(ImageVerdict& image) const { each(image.kind, image.arch, image.isa, image.reason); }
  void walk(Evidence& evidence) const {
    each(evidence.text, evidence.at.file);
    for (auto& argument : evidence.arguments) walk(argument.second);
  }
  void walk(Device& device) const { each(device.name); }
  void walk(ReportLine& at) const { each(at.file); }
  void walk(PackageName& package) const { each(package.name, package.version, package.installer); }
  void walk(Place& place) const { each(place.file, place.function, place.object); }
  void walk(Fix& fix) const {
    each(fix.title, fix.why, fix.caveat);
    for (std::string& command : fix.commands) change_command_(command);
  }
  void walk(DeadEnd& end) const { each(end.action, end.why); }
  void walk(Finding& finding) const {
    each(finding.code_name, finding.object, finding.other_objects, finding.package, finding.headline,
         finding.kernels, finding.have, finding.images, finding.need, finding.devices, finding.failed_call,
         finding.failed_kernel, finding.kernel_source, finding.evidence, finding.where, finding.processes,
         finding.seen_in, finding.build_id, finding.fixes, finding.dead_ends, finding.remarks);
  }
  void walk(Analysis& analysis) const {
    each(analysis.devices, analysis.processes, analysis.runs, analysis.findings, analysis.fleet,
         analysis.notes, analysis.blind);
  }
  template <class T>
  void walk(std::vector<T>& items) const {
    for (T& item : items) walk(item);
  }

 private:
  template <class... Parts>
  void each(Parts&... parts) const {
    (walk(parts), ...);
  }
  Change& change_;
  ChangeCommand& change_command_;
};

/// For an Analysis, a Finding, or a list of them.
template <class Whole, class Change>
void each_string(Whole& whole, Change change) {
  StringWalk<Change, Change>(change, change).walk(whole);
}
template <class Whole, class Change, class ChangeCommand>
void each_string(Whole& whole, Change change, ChangeCommand change_command) {
  StringWalk<Change, ChangeCommand>(change, change_command).walk(whole);
}

}  // namespace kshim::test

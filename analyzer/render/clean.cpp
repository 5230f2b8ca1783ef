// SPDX-License-Identifier: Apache-2.0
// Every string of an analysis made harmless before anything is laid out, so that no place that prints can
// forget it.
#include "analyzer/render/clean.h"

#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

class Cleaner {
 public:
  explicit Cleaner(bool unicode) : unicode_(unicode) {}

  void clean(std::string& text) const { text = unicode_ ? harmless(text) : ascii(text); }
  void clean(DeviceSummary& device) const {
    each(device.host, device.name, device.uuid, device.pci, device.driver_cuda, device.kernel_module);
  }
  void clean(ProcessSummary& process) const { each(process.report, process.host, process.exe, process.argv); }
  void clean(BlindProcess& process) const { each(process.exe, process.reason); }
  void clean(ImageVerdict& image) const { each(image.kind, image.arch, image.isa, image.reason); }
  void clean(Evidence& evidence) const { each(evidence.text, evidence.location); }
  void clean(Place& place) const { each(place.file, place.function, place.object); }
  void clean(Fix& fix) const { each(fix.title, fix.commands, fix.why, fix.caveat); }
  void clean(DeadEnd& end) const { each(end.action, end.why); }
  void clean(Finding& finding) const {
    each(finding.code_name, finding.object, finding.package, finding.headline, finding.kernels, finding.have,
         finding.images, finding.need, finding.devices, finding.failed_call, finding.failed_kernel,
         finding.evidence, finding.where, finding.fixes, finding.dead_ends, finding.remarks);
  }
  void clean(Analysis& analysis) const {
    each(analysis.devices, analysis.processes, analysis.findings, analysis.notes, analysis.blind);
  }

 private:
  template <class T>
  void clean(std::vector<T>& items) const {
    for (T& item : items) clean(item);
  }
  template <class... Parts>
  void each(Parts&... parts) const {
    (clean(parts), ...);
  }
  bool unicode_;
};

}  // namespace

Analysis cleaned(Analysis analysis, bool unicode) {
  Cleaner(unicode).clean(analysis);
  return analysis;
}

}  // namespace kshim::analysis

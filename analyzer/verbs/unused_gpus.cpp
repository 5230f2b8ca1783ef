// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/unused_gpus.h"

#include <algorithm>

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostIdle = 65536;

bool used_any(const Report& report) {
  return !report.modules.empty() || !report.failures.empty() || !report.coverage.empty() ||
         (report.end && (report.end->modules != 0 || report.end->failures != 0));
}

}  // namespace

void UnusedGpus::add(const Report& report) {
  // Without an end, what came last is not known.
  used_ = used_ || used_any(report) || !report.end;
  if (report.driver && !report.devices.empty() && idle_.size() < kMostIdle) idle_.push_back(report.path);
}

void UnusedGpus::note(const Analysis& analysis, NoteList& notes) const {
  if (used_ || !analysis.blind.empty()) return;
  if (analysis.term_signal || analysis.exit_status.value_or(0) != 0) return;  // the verdict says that
  if (worst(analysis) >= Severity::warning) return;
  for (const std::string& report : idle_) {
    notes.add(
        report,
        "the program asked the driver for its GPUs and loaded no GPU code that kshim saw: it ran on the "
        "CPU, or had no work for a GPU; its own log may say why: kshim explain --log FILE");
  }
}

}  // namespace kshim::analysis

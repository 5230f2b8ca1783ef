// SPDX-License-Identifier: Apache-2.0
// A framework that misses a library goes on on the CPU: no call fails, and the report is that of a healthy
// run.
#pragma once
#include <string>
#include <vector>

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/note_list.h"

namespace kshim::analysis {

/// Whether the processes that asked for GPUs used any.
class UnusedGpus {
 public:
  void add(const Report& report);
  /// Adds a note where none of them has loaded anything, and nothing else tells why. `analysis`: its findings
  /// are all there.
  void note(const Analysis& analysis, NoteList& notes) const;

 private:
  bool used_ = false;  ///< or something failed, or was not seen: a launcher counts GPUs for others
  std::vector<std::string> idle_;  ///< reports
};

}  // namespace kshim::analysis

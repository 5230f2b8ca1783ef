// SPDX-License-Identifier: Apache-2.0
// Any number of reports, each judged by itself: `kshim analyze --format jsonl`.
#pragma once

#include "analyzer/verbs/line_pattern.h"

namespace kshim::verbs {

struct EachCounts {
  std::uint64_t reports = 0;   ///< rejected ones included
  std::uint64_t rejected = 0;  ///< that could not be read
  bool errors = false;         ///< whether any has a finding of severity error, or failed
};

/// `maker` is called in several threads at once. `write` gets the lines in the order of the reports, several
/// together, in one thread at a time. Memory does not grow with the number of reports. `jobs`: threads; 0:
/// one a core, eight at most.
EachCounts analyze_each(const std::vector<std::filesystem::path>& reports_or_folders,
                        const diagnose::AnalysisOptions& options, unsigned jobs, const LineMaker& maker,
                        const std::function<void(std::string_view)>& write, std::vector<std::string>& notes);

}  // namespace kshim::verbs

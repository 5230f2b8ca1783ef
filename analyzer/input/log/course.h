// SPDX-License-Identifier: Apache-2.0
// How a log goes on after a failing line: whether the program did without what failed, and what it died of
// in the end.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/core/finding.h"

namespace kshim::explain {

struct Hit;

/// The last line of a Python traceback that names nothing of CUDA's.
struct Death {
  std::uint64_t line = 0;
  std::string quote;
  std::vector<analysis::Place> frames;  ///< outermost first
};

struct Course {
  std::vector<std::uint64_t> goes_on;  ///< lines that say that the program does without something
  std::uint64_t last_works = 0;        ///< 0 = none
  std::string last_works_quote;
  std::uint64_t last_finished = 0;
  std::string last_finished_quote;
  std::vector<Death> deaths;
};

/// Why the failing line was survived, as a sentence; empty where nothing says so.
std::string survived(const Course& course, const Hit& hit, analysis::Cause cause);
/// What ended the program after a line that it had survived; nullptr for none.
const Death* death_after(const Course& course, const Hit& hit);

}  // namespace kshim::explain

// SPDX-License-Identifier: Apache-2.0
// What in a report cannot be as it says: records that refer to nothing, GPUs and drivers that do not exist.
#pragma once
#include "analyzer/input/report/report.h"

namespace kshim::analysis {

/// Which kinds of records were all kept: only then can one be missing.
struct Whole {
  bool objects = true;
  bool modules = true;
  bool devices = true;
  bool failures = true;
};
/// Adds a note for each kind of contradiction, with the first line of it, and what `end` counts beyond what
/// is there to Report::missing.
void check_report(Report& report, Whole whole);

}  // namespace kshim::analysis

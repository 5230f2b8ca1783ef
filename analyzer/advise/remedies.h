// SPDX-License-Identifier: Apache-2.0
// What to do about one message, where that is more than what its cause asks for.
#pragma once

#include "analyzer/advise/advice.h"
#include "analyzer/advise/step.h"
#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::advise {

/// The index of PyTorch's builds that serves the GPU and the driver; that of most GPUs where neither is
/// known.
std::string torch_index(const Facts& at);

/// The first line for a message that has one of its own; empty else.
std::string_view title_of_message(std::string_view message);
/// What helps with the message of a log's deciding line.
struct Remedies {
  FixDrafts of_package;  ///< for this package or situation
  FixDrafts others;
  Rest rest = Rest::also;  ///< what becomes of the fixes of its cause
  bool for_gpu = false;    ///< one of them is for the very GPU
  /// They stand alone: nothing is to be made of the cause.
  bool alone() const { return rest == Rest::alone; }
};
Remedies remedies_of(const Facts& at);
/// Puts them beside the fixes of the cause.
void add_remedies(Remedies remedies, AdviceDraft& advice);
/// What the log lists as installed decides which side to change: that fix comes first.
void add_by_listing(const Facts& at, FixDrafts& fixes);

// What to run in order to know more than a log tells.

struct NextStep {
  std::string command;
  std::string why;
};

/// Most telling first.
std::vector<NextStep> next_steps(const LogFacts& clues, const Judgment& judgment);

}  // namespace kshim::advise

// SPDX-License-Identifier: Apache-2.0
// What to do about one message, where that is more than what its cause asks for.
#pragma once

#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::advise {

/// The index of PyTorch's builds that serves the GPU and the driver; that of most GPUs where neither is
/// known.
std::string torch_index(const diagnose::Facts& at);
/// The first line for the message, where it has one whose words the log has; empty else.
std::string_view title_of_message(std::string_view message, const diagnose::Facts& at);

// What to run in order to know more than a log tells.

struct NextStep {
  std::string command;
  std::string why;
};

/// Most telling first.
std::vector<NextStep> next_steps(const input::LogFacts& clues, const diagnose::Judgment& judgment);

}  // namespace kshim::advise

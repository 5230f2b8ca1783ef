// SPDX-License-Identifier: Apache-2.0
// What to run in order to know more than a log tells.
#pragma once
#include <string>
#include <vector>

#include "analyzer/diagnose/log_diagnosis.h"

namespace kshim::explain {

struct NextStep {
  std::string command;
  std::string why;
};

/// Most telling first.
std::vector<NextStep> next_steps(const Clues& clues, const Judgement& judgement);

}  // namespace kshim::explain

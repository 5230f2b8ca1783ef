// SPDX-License-Identifier: Apache-2.0
// kshim doctor: what this machine has of CUDA, which of it a program would get, and what would blind the
// shim.
#pragma once

#include "analyzer/input/machine/facts.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

struct Examination {
  MachineFacts machine;
  Scan packages;  ///< of one Python environment; empty where there is none
};

/// `program` is empty where none is named. An environment, or an interpreter or script in one, has its
/// packages looked at, and no others.
Examination examine(const Machine& machine, const std::string& program);

}  // namespace kshim::verbs

// SPDX-License-Identifier: Apache-2.0
// kshim doctor: what this machine has of CUDA, which of it a program would get, and what would blind the
// shim.
#pragma once

#include "analyzer/input/machine/facts.h"

namespace kshim::verbs {

/// `program` is empty where none is named. An environment, or an interpreter or script in one, has its
/// packages looked at, and no others.
MachineFacts examine(const Machine& machine, const std::string& program);

}  // namespace kshim::verbs

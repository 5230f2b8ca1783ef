// SPDX-License-Identifier: Apache-2.0
// kshim doctor: what this machine has of CUDA, which of it a program would get, and what would blind the
// shim.
#pragma once

#include "analyzer/input/machine/process.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

struct Examination {
  input::MachineFacts machine;
  Scan packages;  ///< of one Python environment; empty where there is none
};

/// `program` is empty where none is named. An environment, or an interpreter or script in one, has its
/// packages looked at, and no others.
Examination examine(const input::Machine& machine, const std::string& program);
/// The same of a process: the libraries and the device code are those that it has mapped, judged as `request`
/// says or, where it names no targets, for the GPUs of this machine.
Examination examine(const input::LiveProcess& process, ScanRequest request);

}  // namespace kshim::verbs

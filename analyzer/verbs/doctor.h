// SPDX-License-Identifier: Apache-2.0
// kshim doctor: what this machine has of CUDA, which of it a program would get, and what would blind the
// shim.
#pragma once

#include "analyzer/input/machine/facts.h"

namespace kshim::doctor {

/// `program` is empty where none is named. An environment, or an interpreter or script in one, has its
/// packages looked at, and no others.
Facts examine(const Machine& machine, const std::string& program);

/// "4 of 9 files (compiled from PTX)".
std::string coverage_text(const GpuCoverage& gpu);

}  // namespace kshim::doctor

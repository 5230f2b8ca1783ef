// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyzer/input/machine/facts.h"
#include "analyzer/input/machine/machine.h"

namespace kshim::doctor {

/// What the packages of the Python environments are built for, and how many of their files run on the GPUs
/// that were found: what `kshim scan` says of them, by package.
void find_coverage(const Machine& machine, Facts& facts);

}  // namespace kshim::doctor

// SPDX-License-Identifier: Apache-2.0
// What nvcc 13 makes of kernel<<<...>>>: a host stub that asks __cudaGetKernel once and then gives the handle to
// __cudaLaunchKernel. When the first fails the second is called all the same, with a null handle that names no kernel:
// here the place it is called from is remembered for the kernel.
#pragma once
#include "call.h"

namespace kshim::shim {

/// Completes the facts of a failed launch without a handle. False when this launch only passes on the failure of
/// __cudaGetKernel that has just been recorded. `facts` is of a failed runtime call; called for each of them.
bool complete_launch(CallFacts& facts) noexcept;

}  // namespace kshim::shim

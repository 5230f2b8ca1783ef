// SPDX-License-Identifier: Apache-2.0
// What nvcc 13 makes of kernel<<<...>>>: a host stub that asks __cudaGetKernel once and then gives the handle
// to
// __cudaLaunchKernel, also after the first has failed: the handle is then the host stub's address
// (runtime 13.0.96).
#pragma once
#include "cuda/call_args.h"

namespace kshim::shim {

/// Completes the facts of a failed launch with such a handle. False when this launch only passes on the
/// failure of
/// __cudaGetKernel that has just been recorded. `facts` is of a failed runtime call; called for each of them.
bool complete_launch(CallArgs& facts) noexcept;

}  // namespace kshim::shim

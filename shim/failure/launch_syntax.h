// SPDX-License-Identifier: Apache-2.0
// nvcc 13 compiles kernel<<<...>>> to a host stub that calls __cudaGetKernel once and passes the handle to
// __cudaLaunchKernel, even if __cudaGetKernel failed: then the handle is the address of the host stub
// (runtime 13.0.96).
#pragma once
#include "cuda/call_args.h"

namespace kshim::shim {

/// Completes the arguments of a failed launch with such a handle. False if this launch only repeats the
/// failure of __cudaGetKernel that was just recorded. Call it for each failed runtime call.
bool complete_launch(CallArgs& facts) noexcept;

}  // namespace kshim::shim

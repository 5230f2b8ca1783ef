// SPDX-License-Identifier: Apache-2.0
// CUDA's codes that several parts ask for. Their names: kshim/base/cuda_errors.def.
#pragma once

namespace kshim::analysis {

/// 35: the driver is older than the runtime, or there is none.
inline constexpr int kInsufficientDriver = 35;

}  // namespace kshim::analysis

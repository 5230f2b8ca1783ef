// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on a multiprocessor: the toolkit's cuda_occupancy.h with the device's
// limits.
#pragma once
#include <cstddef>

#include "base/driver_api.h"

namespace kshim::sim {

struct Function;

/// Blocks of `threads` threads and `dynamic_shared` bytes at once on one multiprocessor; 0 when not even one
/// fits.
CUresult active_blocks(const Function& function, int threads, std::size_t dynamic_shared,
                       int& blocks) noexcept;

constexpr unsigned kPortableCluster = 8;   // blocks: Programming Guide 13.0, "Thread Block Clusters"
constexpr unsigned kMaxClusterBytes = 16;  // with CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED

}  // namespace kshim::sim

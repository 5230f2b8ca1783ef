// SPDX-License-Identifier: Apache-2.0
// Launches are accepted and not executed. The checks that a driver makes before it submits work are made
// here; order and codes are those of cuda.h, and docs/internals/simulator.md says which are assumed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/driver_api.h"

namespace kshim::sim {

struct Context;
struct Function;
struct FunctionSettings;

struct Extent {
  unsigned x = 1, y = 1, z = 1;
  std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
  bool empty() const noexcept { return x == 0 || y == 0 || z == 0; }
};

struct Launch {
  Extent grid, block;
  unsigned shared = 0;  ///< dynamic, bytes a block
  void** parameters = nullptr;
  void** extra = nullptr;
  Extent cluster{0, 0, 0};  ///< 0: not asked for
  bool cooperative = false;
};

Launch launch_of(const CUlaunchConfig& config) noexcept;
/// Blocks in a cluster: what the launch asks for, else what the function requires, else 1. 0 when that
/// overflows.
unsigned cluster_blocks(const Launch& launch, const FunctionSettings& settings) noexcept;

/// 1 (dimensions, shared memory, arguments), 701 (more threads than the kernel takes), 720 (cooperative grid
/// too large), 801 (no cooperative launches here), 912 (clusters).
CUresult check_launch(const Function& function, const Launch& launch) noexcept;

/// A kernel's arguments, copied as the driver does at the call: one block of bytes, laid out as the kernel
/// wants them. False where the arguments do not suffice.
bool copy_arguments(const Function& function, const Launch& launch, std::vector<std::byte>& out);

/// The whole of a launch: function or kernel handle, checks, stream, capture.
CUresult launch_kernel(CUfunction handle, const Launch& launch, CUstream stream);

}  // namespace kshim::sim

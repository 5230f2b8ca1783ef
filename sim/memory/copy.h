// SPDX-License-Identifier: Apache-2.0
// Copies. Each is one CUDA_MEMCPY3D, checked at the call and executed in stream order; graph copy nodes hold
// the same operation.
#pragma once
#include <optional>

#include "base/driver_api.h"
#include "launch/stream.h"

namespace kshim::sim {

struct CopyOperation final : Operation {
  explicit CopyOperation(const CUDA_MEMCPY3D& copy) noexcept : params(copy) {}
  CUDA_MEMCPY3D params;
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_MEMCPY; }
  void execute() override;
  std::unique_ptr<Operation> clone() const override;
};

/// Pitches and heights of zero made explicit, addresses and extents checked: CUDA_ERROR_INVALID_VALUE for
/// null or unknown device memory and ranges outside of arrays, 400 for anything but an array.
CUresult check_copy(CUDA_MEMCPY3D& copy) noexcept;

/// `size` bytes between two addresses; their kinds are given or looked up (CU_MEMORYTYPE_UNIFIED).
CUDA_MEMCPY3D linear_copy(CUmemorytype to_kind, std::uintptr_t to, CUmemorytype from_kind,
                          std::uintptr_t from, std::size_t size) noexcept;
CUDA_MEMCPY3D planar_copy(const CUDA_MEMCPY2D& copy) noexcept;

/// Checks and enqueues. Without a stream: on the legacy stream, and waits until it is done.
CUresult copy_memory(CUDA_MEMCPY3D copy, std::optional<CUstream> stream);

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Memsets of 1, 2 and 4 byte values over a rectangle; graph memset nodes hold the same operation.
#pragma once
#include <optional>

#include "base/driver_api.h"
#include "launch/stream.h"

namespace kshim::sim {

struct FillOperation final : Operation {
  explicit FillOperation(const CUDA_MEMSET_NODE_PARAMS& fill) noexcept : params(fill) {}
  CUDA_MEMSET_NODE_PARAMS params;  ///< width in elements; pitch in bytes
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_MEMSET; }
  void execute() override;  ///< nothing where the memory is not there (any more)
  std::unique_ptr<Operation> clone() const override;
};

/// CUDA_ERROR_INVALID_VALUE for a rectangle outside of known memory, an odd address or an unknown element
/// size.
CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS& fill) noexcept;

/// Checks and enqueues; in a capture the memory need not be there yet. Without a stream: on the legacy
/// stream, and waits until it is done.
CUresult fill_memory(const CUDA_MEMSET_NODE_PARAMS& fill, std::optional<CUstream> stream);

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// A host function in a stream (cuLaunchHostFunc, cuStreamAddCallback) or a graph's host node.
#pragma once
#include "launch/stream.h"

namespace kshim::sim {

struct HostOperation final : Operation {
  explicit HostOperation(const CUDA_HOST_NODE_PARAMS& function) noexcept : params(function) {}
  CUDA_HOST_NODE_PARAMS params;
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_HOST; }
  void execute() override { params.fn(params.userData); }
  std::unique_ptr<Operation> clone() const override { return std::make_unique<HostOperation>(params); }
  bool on_driver_thread() const noexcept override { return true; }
};

/// The stream behind a handle, whatever context it is of: copies, waits and queries take a stream of any
/// device. 0, 1 and 2 are those of the current context. Null for a foreign handle.
Stream* any_stream(CUstream handle) noexcept;

}  // namespace kshim::sim

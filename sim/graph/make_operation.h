// SPDX-License-Identifier: Apache-2.0
// Validates the parameter structures of cuda.h and makes a node's operation. One overload for each kind.
#pragma once
#include <memory>

#include "graph/graph.h"

namespace kshim::sim {

using OperationPtr = std::unique_ptr<Operation>;

/// `func` or, where that is null, `kern` in `ctx` or the current context. 400 for what is neither; then as a
/// launch.
CUresult make_operation(const CUDA_KERNEL_NODE_PARAMS_v2& params, OperationPtr& out);
CUresult make_operation(const CUDA_KERNEL_NODE_PARAMS_v1& params, OperationPtr& out);
CUresult make_operation(const CUDA_MEMCPY3D& params, OperationPtr& out);
CUresult make_operation(const CUDA_MEMSET_NODE_PARAMS& params, OperationPtr& out);
CUresult make_operation(const CUDA_HOST_NODE_PARAMS& params, OperationPtr& out);
/// The child is copied.
CUresult make_child(CUgraph child, OperationPtr& out);
CUresult make_event(CUgraphNodeType type, CUevent event, OperationPtr& out);
/// 801 for kinds of nodes that are not simulated: semaphores, batched memory operations, conditionals.
CUresult make_operation(const CUgraphNodeParams& params, OperationPtr& out);

}  // namespace kshim::sim

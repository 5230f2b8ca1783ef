// SPDX-License-Identifier: Apache-2.0
#include "graph/make_operation.h"

#include "context/context.h"
#include "graph/kernel_operation.h"
#include "launch/stream_host.h"
#include "memory/copy.h"
#include "memory/fill.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

/// The context a kernel node runs in: a CUfunction's own, else the one given, else the current one.
CUresult context_of(const CUDA_KERNEL_NODE_PARAMS_v2& params, Context*& out) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  if (const auto* function = object_of<Function>(params.func)) {
    out = &function->module.context;
    return CUDA_SUCCESS;
  }
  if (params.func == nullptr && params.ctx != nullptr) {
    out = object_of<Context>(params.ctx);
    return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
  }
  return require_context(out);
}

}  // namespace

CUresult make_operation(const CUDA_KERNEL_NODE_PARAMS_v2& params, OperationPtr& out) {
  Context* context = nullptr;
  if (const CUresult result = context_of(params, context); result != CUDA_SUCCESS) return result;
  const void* handle = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
  Function* function = nullptr;
  if (const CUresult found = find_function(handle, *context, function); found != CUDA_SUCCESS) return found;
  Launch launch{{params.gridDimX, params.gridDimY, params.gridDimZ},
                {params.blockDimX, params.blockDimY, params.blockDimZ},
                params.sharedMemBytes,
                params.kernelParams,
                params.extra};
  if (const CUresult fits = check_launch(*function, launch); fits != CUDA_SUCCESS) return fits;
  auto made = std::make_unique<KernelOperation>(handle, *function, launch);
  if (!made->complete()) return CUDA_ERROR_INVALID_VALUE;
  out = std::move(made);
  return CUDA_SUCCESS;
}

CUresult make_operation(const CUDA_KERNEL_NODE_PARAMS_v1& params, OperationPtr& out) {
  CUDA_KERNEL_NODE_PARAMS_v2 newer{};
  newer.func = params.func;
  newer.gridDimX = params.gridDimX, newer.gridDimY = params.gridDimY, newer.gridDimZ = params.gridDimZ;
  newer.blockDimX = params.blockDimX, newer.blockDimY = params.blockDimY, newer.blockDimZ = params.blockDimZ;
  newer.sharedMemBytes = params.sharedMemBytes;
  newer.kernelParams = params.kernelParams;
  newer.extra = params.extra;
  return make_operation(newer, out);
}

CUresult make_operation(const CUDA_MEMCPY3D& params, OperationPtr& out) {
  CUDA_MEMCPY3D copy = params;
  if (const CUresult result = check_copy(copy); result != CUDA_SUCCESS) return result;
  out = std::make_unique<CopyOperation>(copy);
  return CUDA_SUCCESS;
}

CUresult make_operation(const CUDA_MEMSET_NODE_PARAMS& params, OperationPtr& out) {
  if (const CUresult result = check_fill(params); result != CUDA_SUCCESS) return result;
  out = std::make_unique<FillOperation>(params);
  return CUDA_SUCCESS;
}

CUresult make_operation(const CUDA_HOST_NODE_PARAMS& params, OperationPtr& out) {
  if (params.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out = std::make_unique<HostOperation>(params);
  return CUDA_SUCCESS;
}

CUresult make_child(CUgraph handle, OperationPtr& out) {
  const auto* child = object_of<Graph>(handle);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  out = std::make_unique<ChildOperation>(child->clone());
  return CUDA_SUCCESS;
}

CUresult make_event(CUgraphNodeType type, CUevent event, OperationPtr& out) {
  if (object_of<Event>(event) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  out = std::make_unique<EventOperation>(type, event);
  return CUDA_SUCCESS;
}

CUresult make_operation(const CUgraphNodeParams& params, OperationPtr& out) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const auto& k = params.kernel;
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      kernel.func = k.func;
      kernel.gridDimX = k.gridDimX, kernel.gridDimY = k.gridDimY, kernel.gridDimZ = k.gridDimZ;
      kernel.blockDimX = k.blockDimX, kernel.blockDimY = k.blockDimY, kernel.blockDimZ = k.blockDimZ;
      kernel.sharedMemBytes = k.sharedMemBytes;
      kernel.kernelParams = k.kernelParams;
      kernel.extra = k.extra;
      kernel.kern = k.kern;
      kernel.ctx = k.ctx;
      return make_operation(kernel, out);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return make_operation(params.memcpy.copyParams, out);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const auto& m = params.memset;
      return make_operation(
          CUDA_MEMSET_NODE_PARAMS{m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, out);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return make_operation(CUDA_HOST_NODE_PARAMS{params.host.fn, params.host.userData}, out);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return make_child(params.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      out = std::make_unique<EmptyOperation>();
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return make_event(params.type, params.eventWait.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return make_event(params.type, params.eventRecord.event, out);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Parameters of nodes: cuGraph*NodeGetParams and SetParams, and the cuGraphExec* forms that change an
// instantiated graph, where a node is named by the one of the graph it came from.
#include "context/context.h"
#include "entry/entry.h"
#include "graph/kernel_operation.h"
#include "graph/make_operation.h"
#include "launch/stream_host.h"
#include "memory/async_memory.h"
#include "memory/copy.h"
#include "memory/fill.h"

namespace kshim::sim {
namespace {

/// The operation of a node, where it is of that kind.
template <class T>
T* operation_of(CUgraphNode handle) noexcept {
  const auto* node = object_of<Node>(handle);
  return node != nullptr ? dynamic_cast<T*>(node->operation.get()) : nullptr;
}

/// A node keeps its kind.
CUresult replace(Node* node, CUresult made, OperationPtr operation) {
  if (made != CUDA_SUCCESS) return made;
  if (node == nullptr || node->type() != operation->type()) return CUDA_ERROR_INVALID_VALUE;
  node->operation = std::move(operation);
  return CUDA_SUCCESS;
}

template <class Params>
CUresult set(CUgraphNode handle, const Params* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  OperationPtr operation;
  const CUresult made = make_operation(*params, operation);
  return replace(object_of<Node>(handle), made, std::move(operation));
}

template <class Params>
CUresult set_in(CUgraphExec exec_handle, CUgraphNode handle, const Params* params) {
  auto* exec = object_of<GraphExec>(exec_handle);
  if (exec == nullptr || params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  OperationPtr operation;
  const CUresult made = make_operation(*params, operation);
  return replace(exec->find(handle), made, std::move(operation));
}

CUresult set_event(Node* node, CUgraphNodeType type, CUevent event) {
  OperationPtr operation;
  const CUresult made = make_event(type, event, operation);
  return replace(node, made, std::move(operation));
}

CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent* out) {
  const auto* operation = operation_of<EventOperation>(handle);
  if (operation == nullptr || out == nullptr || operation->type() != type) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->event;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2* out) {
  auto* operation = operation_of<KernelOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->params();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  auto* operation = operation_of<KernelOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS_v2 p = operation->params();
  // The old structure has one field for both kinds of handles.
  *out = {p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern),
          p.gridDimX,
          p.gridDimY,
          p.gridDimZ,
          p.blockDimX,
          p.blockDimY,
          p.blockDimZ,
          p.sharedMemBytes,
          p.kernelParams,
          p.extra};
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  const auto* operation = operation_of<CopyOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->params;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  const auto* operation = operation_of<FillOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->params;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  const auto* operation = operation_of<HostOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->params;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  const auto* operation = operation_of<AllocateOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->params;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  const auto* operation = operation_of<FreeOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->address;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  const auto* operation = operation_of<ChildOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = operation->graph->handle<CUgraph>();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}
CUresult entry::cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}

CUresult entry::cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set(node, params);
}
CUresult entry::cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return set(node, params);
}
CUresult entry::cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* params) {
  return set(node, params);
}
CUresult entry::cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params) {
  return set(node, params);
}
CUresult entry::cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params) {
  return set(node, params);
}
CUresult entry::cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* params) {
  return set(node, params);
}
CUresult entry::cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return set_event(object_of<Node>(node), CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUresult entry::cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return set_event(object_of<Node>(node), CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult entry::cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMCPY3D* params, CUcontext) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             const CUDA_HOST_NODE_PARAMS* params) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* params) {
  return set_in(exec, node, params);
}
CUresult entry::cuGraphExecChildGraphNodeSetParams(CUgraphExec exec_handle, CUgraphNode node, CUgraph child) {
  auto* exec = object_of<GraphExec>(exec_handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  OperationPtr operation;
  const CUresult made = make_child(child, operation);
  return replace(exec->find(node), made, std::move(operation));
}
CUresult entry::cuGraphExecEventRecordNodeSetEvent(CUgraphExec handle, CUgraphNode node, CUevent event) {
  auto* exec = object_of<GraphExec>(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_event(exec->find(node), CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUresult entry::cuGraphExecEventWaitNodeSetEvent(CUgraphExec handle, CUgraphNode node, CUevent event) {
  auto* exec = object_of<GraphExec>(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_event(exec->find(node), CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult entry::cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                              CUkernelNodeAttrValue* out) {
  const auto* operation = operation_of<KernelOperation>(node);
  if (operation == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = operation->attributes.find(attribute);
  *out = found != operation->attributes.end() ? found->second : CUkernelNodeAttrValue{};
  return CUDA_SUCCESS;
}
CUresult entry::cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID attribute,
                                              const CUkernelNodeAttrValue* value) {
  auto* operation = operation_of<KernelOperation>(node);
  if (operation == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  operation->attributes.insert_or_assign(attribute, *value);
  return CUDA_SUCCESS;
}
CUresult entry::cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  auto* target = operation_of<KernelOperation>(to);
  const auto* source = operation_of<KernelOperation>(from);
  if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  target->attributes = source->attributes;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

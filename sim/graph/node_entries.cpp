// SPDX-License-Identifier: Apache-2.0
// cuGraphAdd*Node, cuGraphAddNode.
#include "context/context.h"
#include "entry/entry.h"
#include "graph/make_operation.h"

namespace kshim::sim {
namespace {

/// The graph and the dependencies of a new node.
struct Place {
  Graph* graph = nullptr;
  std::vector<Node*> after;
};

CUresult find_place(CUgraph handle, const CUgraphNode* nodes, std::size_t count, Place& out) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  out.graph = object_of<Graph>(handle);
  if (out.graph == nullptr || (count != 0 && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    Node* node = out.graph->find(nodes[i]);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const Node* other : out.after) {
      if (other == node) return CUDA_ERROR_INVALID_VALUE;  // "A node may not depend twice on another"
    }
    out.after.push_back(node);
  }
  return CUDA_SUCCESS;
}

/// `make` fills in the operation.
template <class Make>
CUresult add(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count, Make make) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Place place;
  if (const CUresult found = find_place(graph, after, count, place); found != CUDA_SUCCESS) return found;
  OperationPtr operation;
  if (const CUresult made = make(operation); made != CUDA_SUCCESS) return made;
  *out = place.graph->add(std::move(operation), place.after).handle<CUgraphNode>();
  return CUDA_SUCCESS;
}

template <class Params>
CUresult add_from(CUgraphNode* out, CUgraph graph, const CUgraphNode* after, std::size_t count,
                  const Params* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(out, graph, after, count,
             [&](OperationPtr& operation) { return make_operation(*params, operation); });
}

}  // namespace

CUresult entry::cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* params) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, const CUDA_KERNEL_NODE_PARAMS_v2* params) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_MEMCPY3D* params, CUcontext) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     std::size_t count, const CUDA_MEMSET_NODE_PARAMS* params, CUcontext) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                   std::size_t count, const CUDA_HOST_NODE_PARAMS* params) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                         std::size_t count, CUgraph child) {
  return add(node, graph, after, count,
             [&](OperationPtr& operation) { return make_child(child, operation); });
}

CUresult entry::cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                    std::size_t count) {
  return add(node, graph, after, count, [](OperationPtr& operation) {
    operation = std::make_unique<EmptyOperation>();
    return CUDA_SUCCESS;
  });
}

CUresult entry::cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                          std::size_t count, CUevent event) {
  return add(node, graph, after, count, [&](OperationPtr& operation) {
    return make_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, operation);
  });
}

CUresult entry::cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                        std::size_t count, CUevent event) {
  return add(node, graph, after, count, [&](OperationPtr& operation) {
    return make_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, operation);
  });
}

CUresult entry::cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, std::size_t count,
                               CUgraphNodeParams* params) {
  return add_from(node, graph, after, count, params);
}

CUresult entry::cuGraphAddNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                  const CUgraphEdgeData*, std::size_t count, CUgraphNodeParams* params) {
  return add_from(node, graph, after, count, params);
}

}  // namespace kshim::sim

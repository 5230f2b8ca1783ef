// SPDX-License-Identifier: Apache-2.0
// Instantiated graphs: cuGraphInstantiate*, Launch, Upload, Update, Exec*.
#include <unordered_map>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "graph/graph.h"
#include "launch/stream_host.h"

namespace kshim::sim {
namespace {

constexpr unsigned long long kKnownFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || out == nullptr || (flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> order;
  if (!graph->sorted(order)) return CUDA_ERROR_INVALID_VALUE;  // a cycle
  *out = (new GraphExec(graph->clone(), flags))->handle<CUgraphExec>();
  return CUDA_SUCCESS;
}

CUresult instantiate_with_log(CUgraphExec* out, CUgraph graph, CUgraphNode* error_node, char* log,
                              std::size_t size) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && size != 0) *log = '\0';
  return instantiate(out, graph, 0);
}

CUresult find(CUgraphExec handle, CUstream stream_handle, GraphExec*& exec, Stream*& stream) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  exec = object_of<GraphExec>(handle);
  stream = any_stream(stream_handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// Nodes that wait for events do so before the graph starts.
void wait_for_events(const Graph& graph, Stream& stream) {
  for (const auto& node : graph.nodes) {
    if (const auto* child = dynamic_cast<const ChildOperation*>(node->operation.get())) {
      wait_for_events(*child->graph, stream);
    } else if (node->enabled && node->type() == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
      auto* event = object_of<Event>(dynamic_cast<const EventOperation&>(*node->operation).event);
      if (event != nullptr) wait_event(stream, *event);
    }
  }
}

struct Difference {
  CUgraphExecUpdateResult why = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  const Node* node = nullptr;  ///< of the new graph
  const Node* from = nullptr;
};

/// Pairs the nodes of two graphs in the order they were made in, and compares kinds and edges.
Difference compare(const Graph& old_graph, const Graph& new_graph) {
  if (old_graph.nodes.size() != new_graph.nodes.size()) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
  std::unordered_map<const Node*, std::size_t> places;
  for (std::size_t i = 0; i < old_graph.nodes.size(); ++i) {
    places.emplace(old_graph.nodes[i].get(), i);
    places.emplace(new_graph.nodes[i].get(), i);
  }
  for (std::size_t i = 0; i < old_graph.nodes.size(); ++i) {
    const Node& before = *old_graph.nodes[i];
    const Node& now = *new_graph.nodes[i];
    if (before.type() != now.type()) return {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &now};
    if (before.dependencies.size() != now.dependencies.size()) {
      return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &now};
    }
    for (const Node* dependency : now.dependencies) {
      bool found = false;
      for (const Node* other : before.dependencies)
        found = found || places.at(other) == places.at(dependency);
      if (!found) return {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &now, dependency};
    }
    const auto* old_child = dynamic_cast<const ChildOperation*>(before.operation.get());
    const auto* new_child = dynamic_cast<const ChildOperation*>(now.operation.get());
    if (old_child != nullptr && new_child != nullptr) {
      const Difference inside = compare(*old_child->graph, *new_child->graph);
      if (inside.why != CU_GRAPH_EXEC_UPDATE_SUCCESS) return inside;
    }
  }
  return {};
}

CUresult update(CUgraphExec exec_handle, CUgraph graph_handle, Difference& difference) {
  auto* exec = object_of<GraphExec>(exec_handle);
  const auto* graph = object_of<Graph>(graph_handle);
  if (exec == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  difference = compare(*exec->graph, *graph);
  if (difference.why != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  Graph& own = exec->own();
  for (std::size_t i = 0; i < own.nodes.size(); ++i)
    own.nodes[i]->operation = graph->nodes[i]->operation->clone();
  return CUDA_SUCCESS;
}

CUgraphNode handle_of(const Node* node) noexcept {
  return node != nullptr ? node->handle<CUgraphNode>() : nullptr;
}

}  // namespace

CUresult entry::cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                                   std::size_t size) {
  return instantiate_with_log(exec, graph, error_node, log, size);
}
CUresult entry::cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                                      std::size_t size) {
  return instantiate_with_log(exec, graph, error_node, log, size);
}
CUresult entry::cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
CUresult entry::cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                             CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = instantiate(exec, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
  return result;
}

CUresult entry::cuGraphExecDestroy(CUgraphExec handle) {
  const auto* exec = object_of<GraphExec>(handle);
  if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
  delete exec;  // launches that have not run yet keep its graph
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  const auto* exec = object_of<GraphExec>(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  GraphExec* exec = nullptr;
  Stream* stream = nullptr;
  return find(handle, stream_handle, exec, stream);
}

CUresult entry::cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  GraphExec* exec = nullptr;
  Stream* stream = nullptr;
  if (const CUresult found = find(handle, stream_handle, exec, stream); found != CUDA_SUCCESS) return found;
  if (any_capture() && stream->capture.load(std::memory_order_acquire) != nullptr) {
    ChildOperation child(exec->graph->clone());
    return enqueue(*stream, child);
  }
  wait_for_events(*exec->graph, *stream);
  GraphLaunch launch(exec->graph);
  return enqueue(*stream, launch);
}

CUresult entry::cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  if (info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Difference difference;
  const CUresult result = update(exec, graph, difference);
  info->result = result == CUDA_ERROR_INVALID_VALUE ? CU_GRAPH_EXEC_UPDATE_ERROR : difference.why;
  info->errorNode = handle_of(difference.node);
  info->errorFromNode = handle_of(difference.from);
  return result;
}

CUresult entry::cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error_node,
                                  CUgraphExecUpdateResult* why) {
  if (error_node == nullptr || why == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Difference difference;
  const CUresult result = update(exec, graph, difference);
  *why = result == CUDA_ERROR_INVALID_VALUE ? CU_GRAPH_EXEC_UPDATE_ERROR : difference.why;
  *error_node = handle_of(difference.node);
  return result;
}

CUresult entry::cuGraphNodeSetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int enabled) {
  auto* exec = object_of<GraphExec>(handle);
  Node* node = exec != nullptr ? exec->find(original) : nullptr;
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeType type = node->type();
  if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
      type != CU_GRAPH_NODE_TYPE_MEMSET) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphNodeGetEnabled(CUgraphExec handle, CUgraphNode original, unsigned int* enabled) {
  auto* exec = object_of<GraphExec>(handle);
  const Node* node = exec != nullptr ? exec->find(original) : nullptr;
  if (node == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

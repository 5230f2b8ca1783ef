// SPDX-License-Identifier: Apache-2.0
// cuGraphCreate, Clone, Destroy; nodes and edges. Lists are asked for twice: with a null array for their
// length, then with room for them; room that is left over is filled with nulls.
#include <fstream>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/graph.h"

namespace kshim::sim {
namespace {

using Edge = std::pair<const Node*, const Node*>;

CUresult give(const std::vector<Node*>& list, CUgraphNode* out, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out != nullptr) {
    for (std::size_t i = 0; i < *count; ++i)
      out[i] = i < list.size() ? list[i]->handle<CUgraphNode>() : nullptr;
    if (*count < list.size()) return CUDA_SUCCESS;
  }
  *count = list.size();
  return CUDA_SUCCESS;
}

/// Every edge is a plain one: whole nodes, no ports.
CUresult give(const std::vector<Node*>& list, CUgraphNode* out, CUgraphEdgeData* data, std::size_t* count) {
  if (data != nullptr && out != nullptr && count != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) data[i] = {};
  }
  return give(list, out, count);
}

CUresult give_edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                    std::size_t* count) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || count == nullptr || (from == nullptr) != (to == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<Edge> edges;
  for (const auto& node : graph->nodes) {
    for (const Node* before : node->dependencies) edges.emplace_back(before, node.get());
  }
  if (from != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) {
      from[i] = i < edges.size() ? edges[i].first->handle<CUgraphNode>() : nullptr;
      to[i] = i < edges.size() ? edges[i].second->handle<CUgraphNode>() : nullptr;
      if (data != nullptr) data[i] = {};
    }
    if (*count < edges.size()) return CUDA_SUCCESS;
  }
  *count = edges.size();
  return CUDA_SUCCESS;
}

/// All or none: an edge that cannot be changed leaves the graph as it was.
CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, std::size_t count,
                      bool add) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || (count != 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::pair<Node*, Node*>> done;
  for (std::size_t i = 0; i < count; ++i) {
    Node* first = graph->find(from[i]);
    Node* second = graph->find(to[i]);
    const bool changed = first != nullptr && second != nullptr && first != second &&
                         (add ? connect(*first, *second) : disconnect(*first, *second));
    if (!changed) {
      for (const auto& [a, b] : done) add ? disconnect(*a, *b) : connect(*a, *b);
      return CUDA_ERROR_INVALID_VALUE;
    }
    done.emplace_back(first, second);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuGraphCreate(CUgraph* out, unsigned int flags) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = (new Graph)->handle<CUgraph>();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphDestroy(CUgraph handle) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || graph->owned) return CUDA_ERROR_INVALID_VALUE;
  delete graph;
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphClone(CUgraph* out, CUgraph original) {
  const auto* graph = object_of<Graph>(original);
  if (graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = graph->clone().release()->handle<CUgraph>();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphNodeFindInClone(CUgraphNode* out, CUgraphNode original, CUgraph clone) {
  const auto* node = object_of<Node>(original);
  const auto* graph = object_of<Graph>(clone);
  if (node == nullptr || graph == nullptr || out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Node* twin = graph->find(node->id);
  if (twin == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = twin->handle<CUgraphNode>();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  const auto* node = object_of<Node>(handle);
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type();
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphGetNodes(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> list;
  for (const auto& node : graph->nodes) list.push_back(node.get());
  return give(list, out, count);
}

CUresult entry::cuGraphGetRootNodes(CUgraph handle, CUgraphNode* out, std::size_t* count) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> list;
  for (const auto& node : graph->nodes) {
    if (node->dependencies.empty()) list.push_back(node.get());
  }
  return give(list, out, count);
}

CUresult entry::cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, std::size_t* count) {
  return give_edges(graph, from, to, nullptr, count);
}
CUresult entry::cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                                   std::size_t* count) {
  return give_edges(graph, from, to, data, count);
}

CUresult entry::cuGraphNodeGetDependencies(CUgraphNode handle, CUgraphNode* out, std::size_t* count) {
  const auto* node = object_of<Node>(handle);
  return node != nullptr ? give(node->dependencies, out, count) : CUDA_ERROR_INVALID_VALUE;
}
CUresult entry::cuGraphNodeGetDependencies_v2(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data,
                                              std::size_t* count) {
  const auto* node = object_of<Node>(handle);
  return node != nullptr ? give(node->dependencies, out, data, count) : CUDA_ERROR_INVALID_VALUE;
}
CUresult entry::cuGraphNodeGetDependentNodes(CUgraphNode handle, CUgraphNode* out, std::size_t* count) {
  const auto* node = object_of<Node>(handle);
  return node != nullptr ? give(node->dependents, out, count) : CUDA_ERROR_INVALID_VALUE;
}
CUresult entry::cuGraphNodeGetDependentNodes_v2(CUgraphNode handle, CUgraphNode* out, CUgraphEdgeData* data,
                                                std::size_t* count) {
  const auto* node = object_of<Node>(handle);
  return node != nullptr ? give(node->dependents, out, data, count) : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                       std::size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult entry::cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                          const CUgraphEdgeData*, std::size_t count) {
  return change_edges(graph, from, to, count, true);
}
CUresult entry::cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                          std::size_t count) {
  return change_edges(graph, from, to, count, false);
}
CUresult entry::cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                             const CUgraphEdgeData*, std::size_t count) {
  return change_edges(graph, from, to, count, false);
}

CUresult entry::cuGraphDestroyNode(CUgraphNode handle) {
  auto* node = object_of<Node>(handle);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->graph.remove(*node);
  return CUDA_SUCCESS;
}

CUresult entry::cuGraphDebugDotPrint(CUgraph handle, const char* path, unsigned int) {
  const auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ofstream file(path);
  file << to_dot(*graph);
  return file.flush() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace kshim::sim

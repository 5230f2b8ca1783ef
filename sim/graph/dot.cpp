// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"
#include "graph/kernel_operation.h"

namespace kshim::sim {
namespace {

const char* kind_of(CUgraphNodeType type) noexcept {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "KERNEL";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "MEMCPY";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "MEMSET";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "HOST";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "GRAPH";
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return "EMPTY";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "EVENT_WAIT";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "EVENT_RECORD";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "MEM_ALLOC";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "MEM_FREE";
    default:
      return "NODE";
  }
}

std::string name_of(const Node& node) { return "node_" + std::to_string(node.id); }

void write(const Graph& graph, std::string& out) {
  for (const auto& node : graph.nodes) {
    std::string label = kind_of(node->type());
    if (const auto* kernel = dynamic_cast<const KernelOperation*>(node->operation.get()))
      label += "\\n" + kernel->name();
    out += "  " + name_of(*node) + " [label=\"" + label + "\"];\n";
    for (const Node* before : node->dependencies)
      out += "  " + name_of(*before) + " -> " + name_of(*node) + ";\n";
    if (const auto* child = dynamic_cast<const ChildOperation*>(node->operation.get())) {
      out += "  subgraph cluster_" + std::to_string(node->id) + " {\n";
      write(*child->graph, out);
      out += "  }\n";
    }
  }
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string out = "digraph graph_1 {\n";
  write(graph, out);
  return out + "}\n";
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Graphs and their nodes. As the driver documents, a graph is not to be used by several threads at once; only
// a capture, which several streams may feed, is under a lock of its own (capture.cpp).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/driver_api.h"
#include "base/handles.h"
#include "graph/user_object.h"
#include "launch/stream.h"

namespace kshim::sim {

struct Graph;

struct Node : Handled<Kind::graph_node> {
  Node(Graph& of, std::unique_ptr<Operation> does, std::uint64_t with_id);
  Graph& graph;
  std::unique_ptr<Operation> operation;
  std::vector<Node*> dependencies;
  std::vector<Node*> dependents;
  const std::uint64_t id;  ///< the same in clones: cuGraphNodeFindInClone, updates of instantiated graphs
  bool enabled = true;     ///< in an instantiated graph: cuGraphNodeSetEnabled
  CUgraphNodeType type() const noexcept { return operation->type(); }
};

struct Graph : Handled<Kind::graph> {
  Graph() { publish(this); }
  explicit Graph(const UserObjects& held) : objects(held) { publish(this); }
  std::vector<std::unique_ptr<Node>> nodes;
  UserObjects objects;
  bool owned = false;  ///< by a child graph node: not the program's to destroy

  Node& add(std::unique_ptr<Operation> does, const std::vector<Node*>& after);
  /// Null for a node of another graph or none.
  Node* find(CUgraphNode handle) const noexcept;
  Node* find(std::uint64_t node_id) const noexcept;
  void remove(Node& node);
  std::unique_ptr<Graph> clone() const;
  /// In an order that keeps dependencies; false for a cycle.
  bool sorted(std::vector<Node*>& out) const;
  std::size_t edge_count() const noexcept;
};

bool connect(Node& from, Node& to);     ///< false: the edge is there
bool disconnect(Node& from, Node& to);  ///< false: there is none

/// Nothing: empty nodes, and nodes of kinds whose work is not simulated.
class EmptyOperation final : public Operation {
 public:
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_EMPTY; }
  void execute() override {}
  std::unique_ptr<Operation> clone() const override { return std::make_unique<EmptyOperation>(); }
};

class ChildOperation final : public Operation {
 public:
  explicit ChildOperation(std::unique_ptr<Graph> of) : graph(std::move(of)) { graph->owned = true; }
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  void execute() override;
  std::unique_ptr<Operation> clone() const override {
    return std::make_unique<ChildOperation>(graph->clone());
  }
  bool on_driver_thread() const noexcept override;
  std::unique_ptr<Graph> graph;
};

/// Records an event, or waits for one, at each launch of the graph.
class EventOperation final : public Operation {
 public:
  EventOperation(CUgraphNodeType kind, CUevent of) noexcept : event(of), kind_(kind) {}
  CUgraphNodeType type() const noexcept override { return kind_; }
  void execute() override;
  std::unique_ptr<Operation> clone() const override { return std::make_unique<EventOperation>(*this); }
  CUevent event;

 private:
  CUgraphNodeType kind_;
};

struct GraphExec : Handled<Kind::graph_exec> {
  GraphExec(std::unique_ptr<Graph> copy, unsigned long long with_flags);
  std::shared_ptr<Graph> graph;  ///< shared with launches that have not run yet
  const unsigned long long flags;
  /// The graph to change: a copy where a launch still holds the present one.
  Graph& own();
  /// A program names nodes by those of the graph it instantiated.
  Node* find(CUgraphNode original);
};

/// What cuGraphLaunch puts onto the stream.
class GraphLaunch final : public Operation {
 public:
  explicit GraphLaunch(std::shared_ptr<Graph> of) : graph_(std::move(of)) {}
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_GRAPH; }
  void execute() override;
  std::unique_ptr<Operation> clone() const override { return std::make_unique<GraphLaunch>(graph_); }
  bool on_driver_thread() const noexcept override;

 private:
  std::shared_ptr<Graph> graph_;
};

/// Graphviz text, for cuGraphDebugDotPrint: kinds, kernels, edges.
std::string to_dot(const Graph& graph);

}  // namespace kshim::sim

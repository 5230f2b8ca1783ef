// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace kshim::sim {
namespace {

std::atomic<std::uint64_t> g_next_node_id{1};

void run(const Graph& graph) {
  std::vector<Node*> order;
  if (!graph.sorted(order)) return;
  for (const Node* node : order) {
    if (node->enabled) node->operation->execute();
  }
}

bool has_driver_work(const Graph& graph) noexcept {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const auto& node) { return node->operation->on_driver_thread(); });
}

template <class T>
bool contains(const std::vector<T*>& list, const T* wanted) noexcept {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

Node::Node(Graph& of, std::unique_ptr<Operation> does, std::uint64_t with_id)
    : graph(of), operation(std::move(does)), id(with_id) {
  publish(this);
}

bool connect(Node& from, Node& to) {
  if (contains(to.dependencies, &from)) return false;
  to.dependencies.push_back(&from);
  from.dependents.push_back(&to);
  return true;
}

bool disconnect(Node& from, Node& to) {
  if (!contains(to.dependencies, &from)) return false;
  std::erase(to.dependencies, &from);
  std::erase(from.dependents, &to);
  return true;
}

Node& Graph::add(std::unique_ptr<Operation> does, const std::vector<Node*>& after) {
  nodes.push_back(std::make_unique<Node>(*this, std::move(does), g_next_node_id.fetch_add(1)));
  Node& node = *nodes.back();
  for (Node* each : after) connect(*each, node);
  return node;
}

Node* Graph::find(CUgraphNode handle) const noexcept {
  auto* node = object_of<Node>(handle);
  return node != nullptr && &node->graph == this ? node : nullptr;
}

Node* Graph::find(std::uint64_t node_id) const noexcept {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const auto& each) { return each->id == node_id; });
  return found != nodes.end() ? found->get() : nullptr;
}

void Graph::remove(Node& node) {
  const std::vector<Node*> before = node.dependencies;
  const std::vector<Node*> behind = node.dependents;
  for (Node* each : before) disconnect(*each, node);
  for (Node* each : behind) disconnect(node, *each);
  std::erase_if(nodes, [&](const auto& each) { return each.get() == &node; });
}

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>(objects);
  std::unordered_map<const Node*, Node*> twins;
  for (const auto& node : nodes) {
    copy->nodes.push_back(std::make_unique<Node>(*copy, node->operation->clone(), node->id));
    copy->nodes.back()->enabled = node->enabled;
    twins.emplace(node.get(), copy->nodes.back().get());
  }
  for (const auto& node : nodes) {
    for (const Node* before : node->dependencies) connect(*twins.at(before), *twins.at(node.get()));
  }
  return copy;
}

bool Graph::sorted(std::vector<Node*>& out) const {
  std::unordered_map<const Node*, std::size_t> missing;
  out.clear();
  for (const auto& node : nodes) {
    missing.emplace(node.get(), node->dependencies.size());
    if (node->dependencies.empty()) out.push_back(node.get());
  }
  for (std::size_t next = 0; next < out.size(); ++next) {
    for (Node* behind : out[next]->dependents) {
      if (--missing.at(behind) == 0) out.push_back(behind);
    }
  }
  return out.size() == nodes.size();
}

std::size_t Graph::edge_count() const noexcept {
  std::size_t count = 0;
  for (const auto& node : nodes) count += node->dependencies.size();
  return count;
}

void ChildOperation::execute() { run(*graph); }
bool ChildOperation::on_driver_thread() const noexcept { return has_driver_work(*graph); }
void GraphLaunch::execute() { run(*graph_); }
bool GraphLaunch::on_driver_thread() const noexcept { return has_driver_work(*graph_); }

void EventOperation::execute() {
  // Waits were put into the stream before the launch: see cuGraphLaunch.
  auto* target = object_of<Event>(event);
  if (kind_ == CU_GRAPH_NODE_TYPE_WAIT_EVENT || target == nullptr) return;
  const std::uint64_t record = target->recorded.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto now = Event::Clock::now().time_since_epoch();
  target->time_ns.store(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(),
                        std::memory_order_relaxed);
  target->completed.store(record, std::memory_order_release);
}

GraphExec::GraphExec(std::unique_ptr<Graph> copy, unsigned long long with_flags)
    : graph(std::move(copy)), flags(with_flags) {
  publish(this);
}

Graph& GraphExec::own() {
  if (graph.use_count() > 1) graph = graph->clone();
  return *graph;
}

Node* GraphExec::find(CUgraphNode original) {
  const auto* node = object_of<Node>(original);
  return node != nullptr ? own().find(node->id) : nullptr;
}

}  // namespace kshim::sim

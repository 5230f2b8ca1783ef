// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>

#include "with_device.h"

namespace kshim::sim::test {
namespace {

class Graphs : public WithDevice {
 protected:
  void SetUp() override {
    WithDevice::SetUp();
    ASSERT_CU(0, cuGraphCreate(&graph_, 0));
  }
  CUgraphNode fill(CUgraph graph, unsigned value, std::initializer_list<CUgraphNode> after = {}) {
    CUDA_MEMSET_NODE_PARAMS params{memory_, 0, value, 4, 4, 1};
    CUgraphNode node = nullptr;
    EXPECT_CU(0, cuGraphAddMemsetNode(&node, graph, after.begin(), after.size(), &params, context_));
    return node;
  }
  CUgraphNode copy_out(CUgraph graph, std::initializer_list<CUgraphNode> after) {
    CUDA_MEMCPY3D params{};
    params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    params.srcDevice = memory_;
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = result_.data();
    params.WidthInBytes = 16;
    params.Height = params.Depth = 1;
    CUgraphNode node = nullptr;
    EXPECT_CU(0, cuGraphAddMemcpyNode(&node, graph, after.begin(), after.size(), &params, context_));
    return node;
  }
  void run(CUgraphExec exec) {
    ASSERT_CU(0, cuGraphLaunch(exec, nullptr));
    ASSERT_CU(0, cuCtxSynchronize());
  }
  CUgraphExec instantiate(CUgraph graph) {
    CUgraphExec exec = nullptr;
    EXPECT_CU(0, cuGraphInstantiate(&exec, graph, 0));
    return exec;
  }
  CUgraph graph_ = nullptr;
  std::array<unsigned, 4> result_{};
};

TEST_F(Graphs, NodesRunInTheOrderOfTheirEdges) {
  // Made in the wrong order on purpose: only the edges say what comes first.
  const CUgraphNode out = copy_out(graph_, {});
  const CUgraphNode last = fill(graph_, 7);
  const CUgraphNode first = fill(graph_, 5);
  ASSERT_CU(0, cuGraphAddDependencies(graph_, &first, &last, nullptr, 1));
  ASSERT_CU(0, cuGraphAddDependencies(graph_, &last, &out, nullptr, 1));
  const CUgraphExec exec = instantiate(graph_);
  run(exec);
  EXPECT_EQ(result_[0], 7U);
  EXPECT_EQ(result_[3], 7U);
  ASSERT_CU(0, cuGraphExecDestroy(exec));
}

TEST_F(Graphs, ACycleIsRefused) {
  const CUgraphNode a = fill(graph_, 1);
  const CUgraphNode b = fill(graph_, 2, {a});
  EXPECT_CU(1, cuGraphAddDependencies(graph_, &a, &b, nullptr, 1));  // there already
  ASSERT_CU(0, cuGraphAddDependencies(graph_, &b, &a, nullptr, 1));
  CUgraphExec exec = nullptr;
  EXPECT_CU(1, cuGraphInstantiate(&exec, graph_, 0));
  EXPECT_EQ(exec, nullptr);
}

TEST_F(Graphs, ChildrenAreCopiesAndRun) {
  CUgraph child = nullptr;
  ASSERT_CU(0, cuGraphCreate(&child, 0));
  const CUgraphNode inner = fill(child, 9);
  CUgraphNode node = nullptr;
  ASSERT_CU(0, cuGraphAddChildGraphNode(&node, graph_, nullptr, 0, child));
  copy_out(graph_, {node});
  CUDA_MEMSET_NODE_PARAMS other{memory_, 0, 1, 4, 4, 1};
  ASSERT_CU(0, cuGraphMemsetNodeSetParams(inner, &other));  // too late for the copy
  ASSERT_CU(0, cuGraphDestroy(child));
  CUgraph held = nullptr;
  ASSERT_CU(0, cuGraphChildGraphNodeGetGraph(node, &held));
  EXPECT_CU(1, cuGraphDestroy(held));  // the node's, not the program's
  run(instantiate(graph_));
  EXPECT_EQ(result_[0], 9U);
}

TEST_F(Graphs, HostNodesRunInTurnAndOnTheDriversThread) {
  static std::atomic<int> calls{0};
  calls = 0;
  CUDA_HOST_NODE_PARAMS host{[](void* seen) { *static_cast<int*>(seen) = ++calls; }, nullptr};
  int order = 0;
  host.userData = &order;
  CUgraphNode node = nullptr;
  const CUgraphNode before = fill(graph_, 3);
  ASSERT_CU(0, cuGraphAddHostNode(&node, graph_, &before, 1, &host));
  copy_out(graph_, {node});
  const CUgraphExec exec = instantiate(graph_);
  run(exec);
  run(exec);
  EXPECT_EQ(order, 2);
  EXPECT_EQ(result_[0], 3U);
}

TEST_F(Graphs, InstantiatedGraphsAreChangedByThemselves) {
  const CUgraphNode node = fill(graph_, 4);
  const CUgraphNode out = copy_out(graph_, {node});
  const CUgraphExec exec = instantiate(graph_);
  CUDA_MEMSET_NODE_PARAMS other{memory_, 0, 6, 4, 4, 1};
  ASSERT_CU(0, cuGraphExecMemsetNodeSetParams(exec, node, &other, context_));
  run(exec);
  EXPECT_EQ(result_[0], 6U);
  CUDA_MEMSET_NODE_PARAMS kept{};
  ASSERT_CU(0, cuGraphMemsetNodeGetParams(node, &kept));
  EXPECT_EQ(kept.value, 4U);
  EXPECT_CU(1, cuGraphExecMemsetNodeSetParams(exec, out, &other, context_));  // of another kind
  ASSERT_CU(0, cuMemsetD32(memory_, 1, 4));
  ASSERT_CU(0, cuGraphNodeSetEnabled(exec, node, 0));
  run(exec);
  EXPECT_EQ(result_[0], 1U);
}

TEST_F(Graphs, UpdatesKeepTheTopology) {
  copy_out(graph_, {fill(graph_, 4)});
  const CUgraphExec exec = instantiate(graph_);
  CUgraph same = nullptr;
  ASSERT_CU(0, cuGraphCreate(&same, 0));
  copy_out(same, {fill(same, 8)});
  CUgraphExecUpdateResultInfo info{};
  ASSERT_CU(0, cuGraphExecUpdate(exec, same, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  run(exec);
  EXPECT_EQ(result_[0], 8U);
  fill(same, 1);
  EXPECT_CU(910, cuGraphExecUpdate(exec, same, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CUgraph other = nullptr;
  ASSERT_CU(0, cuGraphCreate(&other, 0));
  fill(other, 1, {copy_out(other, {})});
  EXPECT_CU(910, cuGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  EXPECT_NE(info.errorNode, nullptr);
}

TEST_F(Graphs, KernelNodesAreCheckedLikeLaunches) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function_;
  params.gridDimX = params.gridDimY = params.gridDimZ = params.blockDimX = params.blockDimY =
      params.blockDimZ = 1;
  params.kernelParams = arguments();
  CUgraphNode node = nullptr;
  EXPECT_CU(0, cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  params.blockDimX = 2048;
  EXPECT_CU(1, cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  params.blockDimX = 1;
  params.func = nullptr;
  params.kern = reinterpret_cast<CUkernel>(&params);  // a host stub's address: no kernel
  EXPECT_CU(400, cuGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  std::size_t count = 0;
  ASSERT_CU(0, cuGraphGetNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 1U);
}

TEST_F(Graphs, UserObjectsLiveAsLongAsAnyGraphHoldsThem) {
  int ended = 0;
  CUuserObject object = nullptr;
  ASSERT_CU(0, cuUserObjectCreate(
                   &object, &ended, [](void* count) { ++*static_cast<int*>(count); }, 1,
                   CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_CU(0, cuGraphRetainUserObject(graph_, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  EXPECT_CU(1, cuGraphReleaseUserObject(graph_, object, 2));
  const CUgraphExec exec = instantiate(graph_);
  CUgraph clone = nullptr;
  ASSERT_CU(0, cuGraphClone(&clone, graph_));
  ASSERT_CU(0, cuGraphDestroy(graph_));
  ASSERT_CU(0, cuGraphExecDestroy(exec));
  EXPECT_EQ(ended, 0);
  ASSERT_CU(0, cuGraphDestroy(clone));
  EXPECT_EQ(ended, 1);
  EXPECT_CU(1, cuUserObjectRetain(object, 1));  // gone
}

TEST_F(Graphs, ClonesAndTheirNodes) {
  const CUgraphNode a = fill(graph_, 1);
  const CUgraphNode b = fill(graph_, 2, {a});
  CUgraph clone = nullptr;
  ASSERT_CU(0, cuGraphClone(&clone, graph_));
  CUgraphNode twin = nullptr;
  ASSERT_CU(0, cuGraphNodeFindInClone(&twin, b, clone));
  EXPECT_NE(twin, b);
  CUgraphNode before = nullptr;
  std::size_t count = 1;
  ASSERT_CU(0, cuGraphNodeGetDependencies(twin, &before, nullptr, &count));
  EXPECT_EQ(count, 1U);
  ASSERT_CU(0, cuGraphDestroyNode(a));
  ASSERT_CU(0, cuGraphGetRootNodes(graph_, nullptr, &count));
  EXPECT_EQ(count, 1U);
  ASSERT_CU(0, cuGraphGetNodes(clone, nullptr, &count));
  EXPECT_EQ(count, 2U);
  CUgraphNodeType type{};
  EXPECT_CU(1, cuGraphNodeGetType(a, &type));  // gone
  ASSERT_CU(0, cuGraphDestroy(graph_));
  EXPECT_CU(1, cuGraphDestroy(graph_));
}

}  // namespace
}  // namespace kshim::sim::test

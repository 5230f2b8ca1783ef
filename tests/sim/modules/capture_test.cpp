// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "with_device.h"

namespace kshim::sim::test {
namespace {

class Captures : public WithDevice {
 protected:
  void SetUp() override {
    WithDevice::SetUp();
    ASSERT_CU(0, cuStreamCreate(&one_, 0));
    ASSERT_CU(0, cuStreamCreate(&two_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(0, cuEventCreate(&event_, 0));
    ASSERT_CU(0, cuEventCreate(&back_, 0));
  }
  void begin(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_CU(0, cuStreamBeginCapture(one_, mode));
  }
  CUresult end() {
    graph_ = nullptr;
    return cuStreamEndCapture(one_, &graph_);
  }
  CUstreamCaptureStatus status(CUstream stream) {
    CUstreamCaptureStatus out{};
    EXPECT_CU(0, cuStreamIsCapturing(stream, &out));
    return out;
  }
  CUstream one_ = nullptr;
  CUstream two_ = nullptr;
  CUevent event_ = nullptr;
  CUevent back_ = nullptr;
  CUgraph graph_ = nullptr;
};

// cuDNN 9.28 under XLA captures a memset of 0x80 and puts the address in before the launch.
TEST_F(Captures, AMemsetMayNameItsMemoryLater) {
  constexpr CUdeviceptr kMadeUp = 0x80;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD8Async(kMadeUp, 1, 64, one_));
  begin();
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(kMadeUp + 1, 1, 1, one_));  // not aligned
  EXPECT_CU(0, cuMemsetD8Async(kMadeUp, 1, 64, one_));
  ASSERT_CU(0, end());
  std::size_t count = 1;
  CUgraphNode node = nullptr;
  ASSERT_CU(0, cuGraphGetNodes(graph_, &node, &count));
  CUgraphExec exec = nullptr;
  ASSERT_CU(0, cuGraphInstantiate(&exec, graph_, 0));
  EXPECT_CU(0, cuGraphLaunch(exec, two_));  // nowhere to write to
  const CUDA_MEMSET_NODE_PARAMS there{memory_, 0, 7, 1, 64, 1};
  ASSERT_CU(0, cuGraphExecMemsetNodeSetParams(exec, node, &there, context_));
  ASSERT_CU(0, cuGraphLaunch(exec, two_));
  ASSERT_CU(0, cuStreamSynchronize(two_));
  unsigned char byte = 0;
  ASSERT_CU(0, cuMemcpyDtoH(&byte, memory_, 1));
  EXPECT_EQ(byte, 7);
  EXPECT_CU(0, cuGraphExecDestroy(exec));
  EXPECT_CU(0, cuGraphDestroy(graph_));
}

TEST_F(Captures, ForkAndJoinMakeEdges) {
  begin();
  EXPECT_CU(0, cuMemsetD8Async(memory_, 1, 64, one_));
  EXPECT_CU(0, cuEventRecord(event_, one_));
  EXPECT_CU(0, cuStreamWaitEvent(two_, event_, 0));
  EXPECT_EQ(status(two_), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_CU(0, launch(1, 32, 0, two_));
  EXPECT_CU(0, launch(2, 32, 0, one_));
  EXPECT_CU(0, cuEventRecord(back_, two_));
  EXPECT_CU(0, cuStreamWaitEvent(one_, back_, 0));
  EXPECT_CU(0, cuMemsetD8Async(memory_, 2, 64, one_));
  ASSERT_CU(0, end());
  EXPECT_EQ(status(two_), CU_STREAM_CAPTURE_STATUS_NONE);
  std::size_t nodes = 0;
  std::size_t edges = 0;
  ASSERT_CU(0, cuGraphGetNodes(graph_, nullptr, &nodes));
  ASSERT_CU(0, cuGraphGetEdges(graph_, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(nodes, 4U);
  EXPECT_EQ(edges, 4U);  // a diamond
  unsigned char byte = 9;
  ASSERT_CU(0, cuMemcpyDtoH(&byte, memory_, 1));
  EXPECT_EQ(byte, 0);  // captured, not done
  CUgraphExec exec = nullptr;
  ASSERT_CU(0, cuGraphInstantiate(&exec, graph_, 0));
  ASSERT_CU(0, cuGraphLaunch(exec, one_));
  ASSERT_CU(0, cuStreamSynchronize(one_));
  ASSERT_CU(0, cuMemcpyDtoH(&byte, memory_, 1));
  EXPECT_EQ(byte, 2);
  ASSERT_CU(0, cuGraphExecDestroy(exec));
  ASSERT_CU(0, cuGraphDestroy(graph_));
}

TEST_F(Captures, ArgumentsAreThoseOfTheCall) {
  begin();
  value_ = 11;
  EXPECT_CU(0, launch(3, 32, 0, one_));
  value_ = 12;
  ASSERT_CU(0, end());
  CUgraphNode node = nullptr;
  std::size_t count = 1;
  ASSERT_CU(0, cuGraphGetNodes(graph_, &node, &count));
  CUDA_KERNEL_NODE_PARAMS params{};
  ASSERT_CU(0, cuGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(params.func, function_);
  EXPECT_EQ(params.gridDimX, 3U);
  EXPECT_EQ(*static_cast<int*>(params.kernelParams[1]), 11);
  ASSERT_CU(0, cuGraphDestroy(graph_));
}

TEST_F(Captures, WaitingForACapturingStreamBreaksIt) {
  begin();
  EXPECT_CU(900, cuStreamSynchronize(one_));
  EXPECT_EQ(status(one_), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  EXPECT_CU(901, launch(1, 32, 0, one_));
  EXPECT_CU(901, end());
  EXPECT_EQ(graph_, nullptr);
  EXPECT_CU(0, launch(1, 32, 0, one_));  // and all is well again
}

TEST_F(Captures, TheLegacyStreamMayNotBeInvolved) {
  EXPECT_CU(900, cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  begin();
  EXPECT_CU(906, launch(1, 32, 0, nullptr));
  EXPECT_CU(901, end());
}

TEST_F(Captures, ForksMustBeJoined) {
  begin();
  EXPECT_CU(0, launch(1, 32, 0, one_));
  EXPECT_CU(0, cuEventRecord(event_, one_));
  EXPECT_CU(0, cuStreamWaitEvent(two_, event_, 0));
  EXPECT_CU(0, launch(1, 32, 0, two_));
  EXPECT_CU(904, end());
  EXPECT_EQ(status(two_), CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_F(Captures, OnlyWhereAndByWhomItWasBegun) {
  EXPECT_CU(401, end());
  begin();
  EXPECT_CU(401, cuStreamBeginCapture(one_, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_CU(0, cuEventRecord(event_, one_));
  EXPECT_CU(0, cuStreamWaitEvent(two_, event_, 0));
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] {
    cuCtxSetCurrent(context_);
    elsewhere = end();
  }).join();
  EXPECT_CU(908, elsewhere);
  CUgraph graph = nullptr;
  EXPECT_CU(903, cuStreamEndCapture(two_, &graph));
  EXPECT_CU(901, end());
}

TEST_F(Captures, TwoCapturesDoNotMerge) {
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  ASSERT_CU(0, cuStreamBeginCapture(two_, CU_STREAM_CAPTURE_MODE_RELAXED));
  EXPECT_CU(0, cuEventRecord(event_, two_));
  EXPECT_CU(902, cuStreamWaitEvent(one_, event_, 0));
  EXPECT_CU(901, end());
  EXPECT_CU(901, cuStreamEndCapture(two_, &graph_));
}

TEST_F(Captures, EventsFromOutsideAreIsolated) {
  EXPECT_CU(0, cuEventRecord(event_, two_));
  begin();
  EXPECT_CU(905, cuStreamWaitEvent(one_, event_, 0));
  EXPECT_CU(901, end());
  begin();
  EXPECT_CU(0, cuEventRecord(event_, one_));
  EXPECT_CU(907, cuEventQuery(event_));
  EXPECT_CU(901, end());
  EXPECT_CU(0, cuEventQuery(event_));
}

TEST_F(Captures, CallsThatMaySynchronizeAreUnsafe) {
  CUdeviceptr more = 0;
  begin();
  EXPECT_CU(900, cuMemAlloc(&more, 4));
  EXPECT_CU(901, end());
  begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_CU(0, cuMemAlloc(&more, 4));
  EXPECT_CU(0, end());
  ASSERT_CU(0, cuGraphDestroy(graph_));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_CU(0, cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  begin();
  EXPECT_CU(0, cuMemAlloc(&more, 4));
  EXPECT_CU(0, end());
  ASSERT_CU(0, cuThreadExchangeStreamCaptureMode(&mode));
  ASSERT_CU(0, cuGraphDestroy(graph_));
}

TEST_F(Captures, InfoNamesTheFrontier) {
  begin();
  EXPECT_CU(0, launch(1, 32, 0, one_));
  CUstreamCaptureStatus state{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* frontier = nullptr;
  std::size_t count = 0;
  ASSERT_CU(0, cuStreamGetCaptureInfo(one_, &state, &id, &graph, &frontier, nullptr, &count));
  EXPECT_NE(id, 0U);
  ASSERT_EQ(count, 1U);
  CUgraphNode node = frontier[0];
  CUgraphNode extra = nullptr;
  ASSERT_CU(0, cuGraphAddEmptyNode(&extra, graph, &node, 1));
  ASSERT_CU(0,
            cuStreamUpdateCaptureDependencies(one_, &extra, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  EXPECT_CU(0, launch(1, 32, 0, one_));
  ASSERT_CU(0, end());
  EXPECT_EQ(graph_, graph);
  ASSERT_CU(0, cuGraphNodeGetDependentNodes(extra, nullptr, nullptr, &count));
  EXPECT_EQ(count, 1U);
  ASSERT_CU(0, cuGraphDestroy(graph_));
}

}  // namespace
}  // namespace kshim::sim::test

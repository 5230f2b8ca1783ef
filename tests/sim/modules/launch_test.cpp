// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "with_device.h"

namespace kshim::sim::test {
namespace {

class Launches : public WithDevice {};

TEST_F(Launches, DimensionsAreChecked) {
  struct Row {
    unsigned grid[3], block[3];
    int expected;
  };
  const Row rows[] = {
      {{1, 1, 1}, {1, 1, 1}, 0},           {{2147483647, 1, 1}, {1024, 1, 1}, 0},
      {{1, 65535, 65535}, {32, 32, 1}, 0}, {{0, 1, 1}, {1, 1, 1}, 1},
      {{1, 0, 1}, {1, 1, 1}, 1},           {{1, 1, 1}, {0, 1, 1}, 1},
      {{1, 1, 1}, {1, 1, 0}, 1},           {{1, 1, 1}, {1025, 1, 1}, 1},
      {{1, 1, 1}, {32, 33, 1}, 1},         {{1, 1, 1}, {1, 1, 65}, 1},
      {{1, 65536, 1}, {1, 1, 1}, 1},       {{1, 1, 65536}, {1, 1, 1}, 1},
      {{2147483648U, 1, 1}, {1, 1, 1}, 1}, {{1, 1, 1}, {1, 1024, 1}, 0},
      {{1, 1, 1}, {1, 1, 64}, 0},
  };
  for (const Row& row : rows) {
    EXPECT_CU(row.expected, cuLaunchKernel(function_, row.grid[0], row.grid[1], row.grid[2], row.block[0],
                                           row.block[1], row.block[2], 0, nullptr, arguments(), nullptr))
        << row.grid[0] << ',' << row.grid[1] << ',' << row.grid[2] << " x " << row.block[0] << ','
        << row.block[1] << ',' << row.block[2];
  }
}

TEST_F(Launches, SharedMemoryNeedsOptIn) {
  EXPECT_CU(0, launch(1, 32, 48 * 1024));
  EXPECT_CU(1, launch(1, 32, 48 * 1024 + 1));
  EXPECT_CU(0, cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024));
  EXPECT_CU(0, launch(1, 32, 227 * 1024));
  EXPECT_CU(1, launch(1, 32, 228 * 1024));
  EXPECT_CU(1,
            cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024 + 1));
}

TEST_F(Launches, ThreadsBeyondTheBoundAre1BeyondTheRegisters701) {
  CubinSpec bounded = spec(90);
  bounded.kernels[0].max_threads = 128;
  bounded.kernels.push_back({.name = "hungry", .registers = 255});
  const Buffer image = build_cubin(bounded);
  ASSERT_CU(0, cuModuleLoadData(&module_, image.data()));
  ASSERT_CU(0, cuModuleGetFunction(&function_, module_, "first"));
  EXPECT_CU(0, launch(1, 128));
  EXPECT_CU(1, launch(1, 129));  // an RTX 3060's answer: tests/sim/ledger
  ASSERT_CU(0, cuModuleGetFunction(&function_, module_, "hungry"));
  int most = 0;
  ASSERT_CU(0, cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function_));
  EXPECT_EQ(most, 256);  // 65536 registers, 8192 a warp of 255
  EXPECT_CU(0, launch(1, 256));
  EXPECT_CU(701, launch(1, 288));
}

TEST_F(Launches, HandlesAreChecked) {
  int nothing = 0;
  const auto with = [&](void* handle, CUstream stream) {
    return cuLaunchKernel(static_cast<CUfunction>(handle), 1, 1, 1, 1, 1, 1, 0, stream, arguments(), nullptr);
  };
  EXPECT_CU(400, with(nullptr, nullptr));
  EXPECT_CU(400, with(&nothing, nullptr));  // as the runtime passes a host stub's address
  EXPECT_CU(400, with(module_, nullptr));
  EXPECT_CU(400, with(function_, reinterpret_cast<CUstream>(&nothing)));
  EXPECT_CU(0, with(function_, CU_STREAM_LEGACY));
  EXPECT_CU(0, with(function_, CU_STREAM_PER_THREAD));
  CUcontext other = nullptr;
  ASSERT_CU(0, cuCtxCreate(&other, nullptr, 0, 1));
  CUstream foreign = nullptr;
  ASSERT_CU(0, cuStreamCreate(&foreign, 0));
  EXPECT_CU(400, with(function_, nullptr));  // a function of another context
  ASSERT_CU(0, cuCtxSetCurrent(context_));
  EXPECT_CU(400, with(function_, foreign));
  ASSERT_CU(0, cuModuleUnload(module_));
  EXPECT_CU(400, with(function_, nullptr));  // its module is gone
  ASSERT_CU(0, cuCtxSetCurrent(nullptr));    // pops one, and then the one below
  ASSERT_CU(0, cuCtxSetCurrent(nullptr));
  EXPECT_CU(201, with(function_, nullptr));
  ASSERT_CU(0, cuCtxDestroy(other));
}

TEST_F(Launches, ArgumentsInABuffer) {
  struct {
    CUdeviceptr pointer;
    int value;
  } packed{memory_, 3};
  std::size_t size = 12;
  const auto with = [&](void** parameters, void** extra) {
    return cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, extra);
  };
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  EXPECT_CU(0, with(nullptr, extra));
  EXPECT_CU(1, with(arguments(), extra));
  EXPECT_CU(1, with(nullptr, nullptr));
  size = 0;
  EXPECT_CU(1, with(nullptr, extra));
}

// NCCL passes the used part of a large parameter.
TEST_F(Launches, ABufferMayEndBeforeTheParameters) {
  const auto buffer =
      std::make_unique<CUdeviceptr>(memory_);  // exactly as large as it says, for AddressSanitizer
  std::size_t size = sizeof *buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.get(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  EXPECT_CU(0, cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  CUstream stream = nullptr;
  ASSERT_CU(0, cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(0, cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_CU(0, cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, extra));
  CUgraph graph = nullptr;
  ASSERT_CU(0, cuStreamEndCapture(stream, &graph));
  CUgraphNode node = nullptr;
  std::size_t nodes = 1;
  ASSERT_CU(0, cuGraphGetNodes(graph, &node, &nodes));
  CUDA_KERNEL_NODE_PARAMS kept{};
  ASSERT_CU(0, cuGraphKernelNodeGetParams(node, &kept));
  ASSERT_NE(kept.kernelParams, nullptr);
  EXPECT_EQ(*static_cast<CUdeviceptr*>(kept.kernelParams[0]), memory_);
  EXPECT_EQ(*static_cast<int*>(kept.kernelParams[1]), 0);
  EXPECT_CU(0, cuGraphDestroy(graph));
  EXPECT_CU(0, cuStreamDestroy(stream));
}

TEST_F(Launches, Cooperative) {
  int blocks = 0;
  ASSERT_CU(0, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, 256, 0));
  int processors = 0;
  ASSERT_CU(0, cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(blocks, 8);  // 2048 threads a multiprocessor
  const auto fits = static_cast<unsigned>(blocks * processors);
  EXPECT_CU(0, cuLaunchCooperativeKernel(function_, fits, 1, 1, 256, 1, 1, 0, nullptr, arguments()));
  EXPECT_CU(720, cuLaunchCooperativeKernel(function_, fits + 1, 1, 1, 256, 1, 1, 0, nullptr, arguments()));
}

// PyCUDA's calls.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_F(Launches, TheCallsOfCudaTwo) {
  EXPECT_CU(0, cuFuncSetBlockShape(function_, 32, 2, 1));
  EXPECT_CU(1, cuFuncSetBlockShape(function_, 0, 1, 1));
  EXPECT_CU(0, cuFuncSetSharedSize(function_, 1024));
  EXPECT_CU(1, cuLaunchGrid(function_, 2, 2));  // no arguments yet
  EXPECT_CU(0, cuParamSetv(function_, 0, &memory_, sizeof memory_));
  EXPECT_CU(0, cuParamSeti(function_, 8, 5));
  EXPECT_CU(0, cuParamSetSize(function_, 12));
  EXPECT_CU(1, cuParamSetSize(function_, 4));
  EXPECT_CU(0, cuLaunchGrid(function_, 2, 2));
  EXPECT_CU(0, cuLaunch(function_));
  EXPECT_CU(0, cuFuncSetSharedSize(function_, 64 * 1024));
  EXPECT_CU(1, cuLaunch(function_));
  CUcontext attached = nullptr;
  EXPECT_CU(0, cuCtxAttach(&attached, 0));
  EXPECT_EQ(attached, context_);
  EXPECT_CU(0, cuCtxDetach(context_));
  EXPECT_CU(0, cuLaunchKernel(function_, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments(), nullptr));
  EXPECT_CU(201, cuCtxDetach(nullptr));
}

#pragma GCC diagnostic pop

// A cluster lies in one of eight groups of 16 or 18 multiprocessors.
TEST_F(Launches, ClustersAtOnce) {
  EXPECT_CU(0, cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 227 * 1024));
  EXPECT_CU(0, cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  const auto at_once = [&](unsigned cluster) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {cluster, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = cluster;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 1;
    config.sharedMemBytes = 227 * 1024;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = -1;
    EXPECT_CU(0, cuOccupancyMaxActiveClusters(&clusters, function_, &config));
    return clusters;
  };
  EXPECT_EQ(at_once(16), 8);
  EXPECT_EQ(at_once(10), 8);
  EXPECT_EQ(at_once(9), 10);  // two in each of the two groups of 18
  EXPECT_EQ(at_once(8), 16);
  EXPECT_EQ(at_once(1), 132);
  EXPECT_EQ(at_once(17), 0);
  EXPECT_EQ(at_once(32), 0);
  EXPECT_CU(0, cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
  CUlaunchAttribute large{};
  large.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  large.value.clusterDim = {17, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = 17;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &large;
  config.numAttrs = 1;
  int clusters = -1;
  EXPECT_CU(912, cuOccupancyMaxActiveClusters(&clusters, function_, &config));
}

TEST_F(Launches, ClustersFromNineOn) {
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  const auto with = [&](CUfunction function, unsigned grid, unsigned blocks) {
    cluster.value.clusterDim = {blocks, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = grid;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 64;
    config.attrs = &cluster;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, function, arguments(), nullptr);
  };
  EXPECT_CU(0, with(function_, 8, 4));
  EXPECT_CU(912, with(function_, 6, 4));    // does not divide the grid
  EXPECT_CU(912, with(function_, 16, 16));  // not portable
  ASSERT_CU(0, cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT_CU(0, with(function_, 16, 16));
  EXPECT_CU(1, cuLaunchKernelEx(nullptr, function_, arguments(), nullptr));
  CUcontext older = nullptr;
  ASSERT_CU(0, cuCtxCreate(&older, nullptr, 0, 1));
  const Buffer image = cubin(86);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_CU(0, cuModuleLoadData(&module, image.data()));
  ASSERT_CU(0, cuModuleGetFunction(&function, module, "first"));
  EXPECT_CU(912, with(function, 8, 2));
  EXPECT_CU(0, with(function, 8, 1));
  ASSERT_CU(0, cuCtxDestroy(older));
  ASSERT_CU(0, cuCtxSetCurrent(context_));
}

TEST_F(Launches, OccupancyFollowsTheToolkitsFormula) {
  int grid = 0;
  int block = 0;
  EXPECT_CU(0, cuOccupancyMaxPotentialBlockSize(&grid, &block, function_, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_CU(0, cuOccupancyMaxPotentialBlockSize(&grid, &block, function_, nullptr, 0, 128));
  EXPECT_EQ(block, 128);
  int blocks = -1;
  EXPECT_CU(0, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, 128, 40 * 1024));
  EXPECT_EQ(blocks, 5);  // 228 KiB a multiprocessor, 41 KiB a block with what is reserved
  EXPECT_CU(1, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, 0, 0));
  EXPECT_CU(400, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nullptr, 128, 0));
  std::size_t shared = 0;
  EXPECT_CU(0, cuOccupancyAvailableDynamicSMemPerBlock(&shared, function_, 1, 128));
  EXPECT_EQ(shared, std::size_t{48} * 1024);
}

}  // namespace
}  // namespace kshim::sim::test

// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

class Contexts : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_CU(0, cuInit(0)); }
  static CUcontext current() {
    CUcontext context = nullptr;
    EXPECT_CU(0, cuCtxGetCurrent(&context));
    return context;
  }
  static CUcontext make(CUdevice device) {
    CUcontext context = nullptr;
    EXPECT_CU(0, cuCtxCreate(&context, nullptr, 0, device));
    return context;
  }
};

TEST_F(Contexts, CallsWithoutOneAre201) {
  EXPECT_EQ(current(), nullptr);
  CUdeviceptr memory = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&memory, 4));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(nullptr));
  CUstream stream = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuStreamCreate(&stream, 0));
}

TEST_F(Contexts, TheStackOfAThread) {
  const CUcontext one = make(0);
  const CUcontext two = make(1);
  EXPECT_EQ(current(), two);
  CUdevice device = -1;
  EXPECT_CU(0, cuCtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_CU(0, cuCtxPushCurrent(one));
  EXPECT_EQ(current(), one);
  CUcontext popped = nullptr;
  EXPECT_CU(0, cuCtxPopCurrent(&popped));
  EXPECT_EQ(popped, one);
  EXPECT_EQ(current(), two);
  EXPECT_CU(0, cuCtxSetCurrent(one));  // replaces the top
  EXPECT_EQ(current(), one);
  EXPECT_CU(0, cuCtxSetCurrent(nullptr));  // pops it
  EXPECT_EQ(current(), one);               // what cuCtxCreate had pushed first
  std::thread([] { EXPECT_EQ(current(), nullptr); }).join();
  EXPECT_CU(0, cuCtxDestroy(one));
  EXPECT_EQ(current(), nullptr);
  EXPECT_CU(0, cuCtxDestroy(two));
}

TEST_F(Contexts, DeepStacks) {
  const CUcontext one = make(0);
  const CUcontext two = make(1);
  for (int i = 0; i < 50; ++i) EXPECT_CU(0, cuCtxPushCurrent(i % 2 == 0 ? one : two));
  CUcontext popped = nullptr;
  for (int i = 49; i >= 0; --i) {
    EXPECT_CU(0, cuCtxPopCurrent(&popped));
    EXPECT_EQ(popped, i % 2 == 0 ? one : two);
  }
  EXPECT_CU(0, cuCtxDestroy(two));
  EXPECT_CU(0, cuCtxDestroy(one));
}

TEST_F(Contexts, ADestroyedOneIsRefused) {
  const CUcontext context = make(0);
  CUcontext also = nullptr;
  EXPECT_CU(0, cuCtxPushCurrent(context));  // twice on the stack: one stays behind
  EXPECT_CU(0, cuCtxDestroy(context));
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent(context));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(context));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(reinterpret_cast<CUcontext>(&also)));
}

TEST_F(Contexts, ThePrimaryContext) {
  unsigned flags = 9;
  int active = -1;
  EXPECT_CU(0, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
  CUcontext one = nullptr;
  CUcontext two = nullptr;
  ASSERT_CU(0, cuDevicePrimaryCtxRetain(&one, 0));
  ASSERT_CU(0, cuDevicePrimaryCtxRetain(&two, 0));
  EXPECT_EQ(one, two);
  ASSERT_CU(0, cuCtxSetCurrent(one));
  CUdeviceptr memory = 0;
  EXPECT_CU(0, cuMemAlloc(&memory, 1 << 20));
  EXPECT_CU(0, cuDevicePrimaryCtxRelease(0));
  EXPECT_CU(0, cuCtxSynchronize());
  EXPECT_CU(0, cuDevicePrimaryCtxRelease(0));
  // A primary context that nobody retains counts as destroyed (CUDA_ERROR_CONTEXT_IS_DESTROYED, cuda.h).
  EXPECT_CU(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
  ASSERT_CU(0, cuDevicePrimaryCtxRetain(&two, 0));
  EXPECT_EQ(one, two);
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_CU(0, cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, total);  // its memory went with it
  EXPECT_CU(0, cuDevicePrimaryCtxReset(0));
  EXPECT_CU(0, cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
}

TEST_F(Contexts, FlagsAndLimits) {
  CUcontext context = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(&context, nullptr, 0x4000, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            cuCtxCreate(&context, nullptr, CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate(&context, nullptr, 0, 7));
  ASSERT_CU(0, cuCtxCreate(&context, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, 1));
  unsigned flags = 0;
  EXPECT_CU(0, cuCtxGetFlags(&flags));
  EXPECT_EQ(flags, unsigned{CU_CTX_SCHED_BLOCKING_SYNC});
  std::size_t value = 0;
  EXPECT_CU(0, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4100));
  EXPECT_CU(0, cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
  EXPECT_EQ(value, 4112U);
  EXPECT_CU(0, cuCtxGetLimit(&value, CU_LIMIT_CIG_ENABLED));
  EXPECT_EQ(value, 0U);
  EXPECT_CU(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3));  // 9.0 has none
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&value, CU_LIMIT_MAX));
  EXPECT_CU(0, cuCtxDestroy(context));
}

TEST_F(Contexts, PeerAccess) {
  const CUcontext one = make(0);
  const CUcontext two = make(1);
  EXPECT_CU(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(one));
  EXPECT_CU(0, cuCtxEnablePeerAccess(one, 0));
  EXPECT_CU(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(one, 0));
  EXPECT_CU(0, cuCtxDisablePeerAccess(one));
  EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, cuCtxEnablePeerAccess(two, 0));
  EXPECT_CU(0, cuCtxDestroy(two));
  EXPECT_CU(0, cuCtxDestroy(one));
}

}  // namespace
}  // namespace kshim::sim::test

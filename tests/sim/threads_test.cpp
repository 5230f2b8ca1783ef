// SPDX-License-Identifier: Apache-2.0
// Many threads at once; the tsan preset is where this test says most.
#include <atomic>
#include <thread>
#include <vector>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

constexpr int kThreads = 6;
constexpr int kRounds = 150;

template <class Work>
void on_threads(Work work) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

using Threads = WithContext;

TEST_F(Threads, MemoryStreamsEventsAndHostFunctions) {
  std::atomic<int> called{0};
  on_threads([&](int index) {
    EXPECT_CU(0, cuCtxSetCurrent(context_));
    CUstream stream = nullptr;
    ASSERT_CU(0, cuStreamCreate(&stream, index % 2 == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < kRounds; ++round) {
      CUdeviceptr memory = 0;
      ASSERT_CU(0, cuMemAllocAsync(&memory, 256, stream));
      const auto wanted = static_cast<unsigned>(index * kRounds + round);
      EXPECT_CU(0, cuMemsetD32Async(memory, wanted, 64, stream));
      if (round % 10 == 0) {
        EXPECT_CU(
            0, cuLaunchHostFunc(
                   stream, [](void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }, &called));
      }
      CUevent event = nullptr;
      ASSERT_CU(0, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
      EXPECT_CU(0, cuEventRecord(event, stream));
      unsigned found[64] = {};
      EXPECT_CU(0, cuMemcpyDtoHAsync(found, memory, sizeof found, stream));
      EXPECT_CU(0, cuStreamSynchronize(stream));
      EXPECT_EQ(found[63], wanted);
      EXPECT_CU(0, cuEventQuery(event));
      EXPECT_CU(0, cuEventDestroy(event));
      EXPECT_CU(0, cuMemFreeAsync(memory, stream));
    }
    EXPECT_CU(0, cuStreamDestroy(stream));
  });
  EXPECT_CU(0, cuCtxSynchronize());
  EXPECT_EQ(called.load(), kThreads * kRounds / 10);
  std::size_t free = 0;
  EXPECT_CU(0, cuMemGetInfo(&free, nullptr));
  EXPECT_EQ(free, kDeviceBytes);
}

TEST_F(Threads, ContextsComeAndGo) {
  on_threads([&](int index) {
    for (int round = 0; round < kRounds; ++round) {
      CUcontext own = nullptr;
      ASSERT_CU(0, cuCtxCreate(&own, nullptr, 0, index % 2));
      CUdeviceptr memory = 0;
      EXPECT_CU(0, cuMemAlloc(&memory, 64));
      EXPECT_CU(0, cuCtxDestroy(own));
      CUcontext primary = nullptr;
      EXPECT_CU(0, cuDevicePrimaryCtxRetain(&primary, 1));
      EXPECT_CU(0, cuCtxSetCurrent(primary));
      EXPECT_CU(0, cuStreamSynchronize(CU_STREAM_PER_THREAD));
      EXPECT_CU(0, cuDevicePrimaryCtxRelease(1));
    }
  });
}

}  // namespace
}  // namespace kshim::sim::test

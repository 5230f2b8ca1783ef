// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "simulated_driver.h"

namespace kshim::sim::test {
namespace {

/// A host function that holds its stream up until it is let go.
class Gate {
 public:
  void close(CUstream stream) { EXPECT_CU(0, cuLaunchHostFunc(stream, &Gate::wait, this)); }
  void open() { opened_.set_value(); }

 private:
  static void wait(void* self) { static_cast<Gate*>(self)->opened_.get_future().wait(); }
  std::promise<void> opened_;
};

class Streams : public WithContext {
 protected:
  void SetUp() override {
    WithContext::SetUp();
    ASSERT_CU(0, cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(0, cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(0, cuMemAlloc(&memory_, 4));
  }
  void TearDown() override {
    EXPECT_CU(0, cuMemFree(memory_));
    EXPECT_CU(0, cuStreamDestroy(stream_));
    EXPECT_CU(0, cuStreamDestroy(other_));
    WithContext::TearDown();
  }
  unsigned value() const { return *reinterpret_cast<const volatile unsigned*>(memory_); }
  CUstream stream_ = nullptr;
  CUstream other_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(Streams, HostFunctionsRunOnAnotherThreadInOrder) {
  struct Log {
    std::vector<int> order;
    std::thread::id thread;
  } log;
  for (int i = 0; i < 3; ++i) {
    ASSERT_CU(0, cuLaunchHostFunc(
                     stream_,
                     [](void* data) {
                       auto* to = static_cast<Log*>(data);
                       to->order.push_back(static_cast<int>(to->order.size()));
                       to->thread = std::this_thread::get_id();
                     },
                     &log));
  }
  EXPECT_CU(0, cuStreamSynchronize(stream_));
  EXPECT_EQ(log.order, (std::vector<int>{0, 1, 2}));
  EXPECT_NE(log.thread, std::this_thread::get_id());
}

TEST_F(Streams, WorkWaitsItsTurn) {
  Gate gate;
  gate.close(stream_);
  EXPECT_CU(0, cuMemsetD32Async(memory_, 5, 1, stream_));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(stream_));
  EXPECT_EQ(value(), 0U);
  EXPECT_CU(0, cuMemsetD32Async(memory_, 9, 1, other_));  // another stream is not held up
  EXPECT_CU(0, cuStreamSynchronize(other_));
  EXPECT_EQ(value(), 9U);
  gate.open();
  EXPECT_CU(0, cuStreamSynchronize(stream_));
  EXPECT_EQ(value(), 5U);
  EXPECT_CU(0, cuStreamQuery(stream_));
}

TEST_F(Streams, EventsJoinStreams) {
  CUevent event = nullptr;
  ASSERT_CU(0, cuEventCreate(&event, CU_EVENT_DEFAULT));
  EXPECT_CU(0, cuEventQuery(event));  // never recorded: nothing to wait for
  Gate gate;
  gate.close(stream_);
  EXPECT_CU(0, cuMemsetD32Async(memory_, 1, 1, stream_));
  EXPECT_CU(0, cuEventRecord(event, stream_));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuEventQuery(event));
  EXPECT_CU(0, cuStreamWaitEvent(other_, event, 0));
  EXPECT_CU(0, cuMemsetD32Async(memory_, 2, 1, other_));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(other_));
  gate.open();
  EXPECT_CU(0, cuStreamSynchronize(other_));
  EXPECT_EQ(value(), 2U);
  EXPECT_CU(0, cuEventSynchronize(event));
  EXPECT_CU(0, cuEventDestroy(event));
}

// Programming Guide, "Default Stream": the legacy stream waits for blocking streams and they for it.
TEST_F(Streams, TheLegacyStreamOrdersBlockingStreams) {
  CUstream blocking = nullptr;
  ASSERT_CU(0, cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  Gate gate;
  gate.close(blocking);
  EXPECT_CU(0, cuMemsetD32Async(memory_, 1, 1, blocking));
  EXPECT_CU(0, cuMemsetD32Async(memory_, 2, 1, nullptr));
  EXPECT_CU(0, cuMemsetD32Async(memory_, 7, 1, stream_));  // non-blocking: at once
  EXPECT_CU(0, cuStreamSynchronize(stream_));
  EXPECT_EQ(value(), 7U);
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuStreamQuery(nullptr));
  gate.open();
  EXPECT_CU(0, cuCtxSynchronize());
  EXPECT_EQ(value(), 2U);
  EXPECT_CU(0, cuStreamDestroy(blocking));
}

TEST_F(Streams, ADestroyedStreamEndsItsWork) {
  CUstream doomed = nullptr;
  ASSERT_CU(0, cuStreamCreate(&doomed, CU_STREAM_NON_BLOCKING));
  CUevent event = nullptr;
  ASSERT_CU(0, cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Gate gate;
  gate.close(doomed);
  EXPECT_CU(0, cuMemsetD32Async(memory_, 3, 1, doomed));
  EXPECT_CU(0, cuEventRecord(event, doomed));
  EXPECT_CU(0, cuStreamWaitEvent(stream_, event, 0));
  EXPECT_CU(0, cuStreamDestroy(doomed));  // returns although the gate is closed
  EXPECT_CU(0, cuEventDestroy(event));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(doomed));
  gate.open();
  EXPECT_CU(0, cuStreamSynchronize(stream_));
  EXPECT_EQ(value(), 3U);
}

TEST_F(Streams, ElapsedTime) {
  CUevent start = nullptr;
  CUevent end = nullptr;
  CUevent untimed = nullptr;
  ASSERT_CU(0, cuEventCreate(&start, 0));
  ASSERT_CU(0, cuEventCreate(&end, 0));
  ASSERT_CU(0, cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  float milliseconds = -1;
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_CU(0, cuEventRecord(start, stream_));
  EXPECT_CU(0, cuEventRecord(untimed, stream_));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, untimed));
  Gate gate;
  gate.close(stream_);
  EXPECT_CU(0, cuEventRecord(end, stream_));
  EXPECT_CU(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, start, end));
  gate.open();
  EXPECT_CU(0, cuEventSynchronize(end));
  EXPECT_CU(0, cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0.0F);
  for (CUevent event : {start, end, untimed}) EXPECT_CU(0, cuEventDestroy(event));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(start));
}

TEST_F(Streams, Properties) {
  CUstream urgent = nullptr;
  int least = 1;
  int greatest = 1;
  ASSERT_CU(0, cuCtxGetStreamPriorityRange(&least, &greatest));
  ASSERT_CU(0, cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, greatest - 10));
  int priority = 0;
  EXPECT_CU(0, cuStreamGetPriority(urgent, &priority));
  EXPECT_EQ(priority, greatest);
  unsigned flags = 0;
  EXPECT_CU(0, cuStreamGetFlags(urgent, &flags));
  EXPECT_EQ(flags, unsigned{CU_STREAM_NON_BLOCKING});
  unsigned long long one = 0;
  unsigned long long legacy = 0;
  unsigned long long per_thread = 0;
  EXPECT_CU(0, cuStreamGetId(urgent, &one));
  EXPECT_CU(0, cuStreamGetId(nullptr, &legacy));
  EXPECT_CU(0, cuStreamGetId(CU_STREAM_PER_THREAD, &per_thread));
  EXPECT_NE(one, legacy);
  EXPECT_NE(legacy, per_thread);
  unsigned long long elsewhere = 0;
  std::thread([&] {
    EXPECT_CU(0, cuCtxSetCurrent(context_));
    EXPECT_CU(0, cuStreamGetId(CU_STREAM_PER_THREAD, &elsewhere));
  }).join();
  EXPECT_NE(per_thread, elsewhere);
  CUcontext of = nullptr;
  EXPECT_CU(0, cuStreamGetCtx(urgent, &of));
  EXPECT_EQ(of, context_);
  EXPECT_CU(0, cuStreamDestroy(urgent));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(urgent));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuStreamCreate(&urgent, 8));
  EXPECT_CU(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery(reinterpret_cast<CUstream>(&urgent)));
}

}  // namespace
}  // namespace kshim::sim::test

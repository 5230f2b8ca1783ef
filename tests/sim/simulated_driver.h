// SPDX-License-Identifier: Apache-2.0
// For tests that are linked against the simulated libcuda.so.1: two devices of known size, and shorthands.
#pragma once
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace kshim::sim::test {

// Set before the first call into the driver: it reads its settings once.
inline const int kDevices = ::setenv("KSHIM_SIM_DEVICES", "8.6;9.0", 1);
inline const int kMemory = ::setenv("KSHIM_SIM_MEMORY", "64M", 1);
constexpr std::size_t kDeviceBytes = std::size_t{64} << 20;

#define EXPECT_CU(expected, call) EXPECT_EQ(static_cast<CUresult>(expected), (call))
#define ASSERT_CU(expected, call) ASSERT_EQ(static_cast<CUresult>(expected), (call))

/// A test with a context of its own on device 0, current on this thread.
class WithContext : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(0, cuInit(0));
    ASSERT_CU(0, cuCtxCreate(&context_, nullptr, 0, 0));
  }
  void TearDown() override { EXPECT_CU(0, cuCtxDestroy(context_)); }
  CUcontext context_ = nullptr;
};

}  // namespace kshim::sim::test

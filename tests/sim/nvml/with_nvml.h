// SPDX-License-Identifier: Apache-2.0
// For tests that are linked against both libraries of the simulator.
#pragma once
#include "../simulated_driver.h"
#include "nvml/library.h"

namespace kshim::sim::test {

#define EXPECT_NVML(expected, call) EXPECT_EQ(expected, static_cast<int>(call))
#define ASSERT_NVML(expected, call) ASSERT_EQ(expected, static_cast<int>(call))

class WithNvml : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NVML(0, nvml::nvmlInit_v2());
    ASSERT_NVML(0, nvml::nvmlDeviceGetHandleByIndex_v2(1, &device_));
  }
  void TearDown() override { EXPECT_NVML(0, nvml::nvmlShutdown()); }
  nvml::Handle* device_ = nullptr;
};

}  // namespace kshim::sim::test

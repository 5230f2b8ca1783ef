// SPDX-License-Identifier: Apache-2.0
// One 9.0 device with a current context and a kernel "first" (pointer, int) to launch.
#pragma once
#include "images.h"

namespace kshim::sim::test {

inline const int kOneDevice = ::setenv("KSHIM_SIM_DEVICES", "9.0;8.6", 1);

class WithDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_CU(0, cuInit(0));
    ASSERT_CU(0, cuCtxCreate(&context_, nullptr, 0, 0));
    const Buffer image = cubin(90);
    ASSERT_CU(0, cuModuleLoadData(&module_, image.data()));
    ASSERT_CU(0, cuModuleGetFunction(&function_, module_, "first"));
    ASSERT_CU(0, cuMemAlloc(&memory_, 64));
  }
  void TearDown() override { EXPECT_CU(0, cuCtxDestroy(context_)); }

  void** arguments() { return arguments_; }
  CUresult launch(unsigned grid, unsigned block, unsigned shared = 0, CUstream stream = nullptr) {
    return cuLaunchKernel(function_, grid, 1, 1, block, 1, 1, shared, stream, arguments_, nullptr);
  }

  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  CUdeviceptr memory_ = 0;
  int value_ = 5;
  void* arguments_[2] = {&memory_, &value_};
};

}  // namespace kshim::sim::test

// SPDX-License-Identifier: Apache-2.0
// Messages and names of cuda_errors.def against the CUDA runtime that is linked.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kshim/base/cuda_error.h"

namespace kshim {
namespace {

TEST(CudaMessage, IsWhatTheRuntimePrints) {
  if (CUDART_VERSION != 13000)
    GTEST_SKIP() << "the messages were taken from 13.0, this is " << CUDART_VERSION;
  int compared = 0;
  for (int code = 0; code < 20000; ++code) {
    const CudaError* error = find_cuda_error(code);
    if (error == nullptr || error->runtime_name == nullptr) continue;
    EXPECT_STREQ(error->message, cudaGetErrorString(static_cast<cudaError_t>(code))) << code;
    EXPECT_STREQ(error->runtime_name, cudaGetErrorName(static_cast<cudaError_t>(code))) << code;
    ++compared;
  }
  EXPECT_GT(compared, 80);
}

}  // namespace
}  // namespace kshim

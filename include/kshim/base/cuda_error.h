// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes by number. Driver (CUresult) and runtime (cudaError_t) share their numbers since
// CUDA 10.1.
#pragma once

namespace kshim {

struct CudaError {
  int code;
  const char* driver_name;   ///< CUDA_ERROR_NO_BINARY_FOR_GPU; nullptr where only the runtime has the code
  const char* runtime_name;  ///< cudaErrorNoKernelImageForDevice; nullptr where only the driver has it
  const char* message;       ///< what cudaGetErrorString says
};

/// nullptr for a number that no header has.
const CudaError* find_cuda_error(int code) noexcept;

}  // namespace kshim

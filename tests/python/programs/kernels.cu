// SPDX-License-Identifier: Apache-2.0
// For ctypes: launch(0) and launch(1) launch a kernel each and answer the runtime's error.
#include <cuda_runtime.h>

namespace {
__global__ void first(float* data) { data[threadIdx.x] = 1; }
__global__ void second(float* data) { data[threadIdx.x] = 2; }
}  // namespace

extern "C" int launch(int which) {
  float* data = nullptr;
  if (const cudaError_t error = cudaMalloc(&data, 4096); error != cudaSuccess) return error;
  if (which == 0)
    first<<<1, 32>>>(data);
  else
    second<<<1, 32>>>(data);
  const cudaError_t error = cudaGetLastError();
  cudaFree(data);
  return error;
}

// SPDX-License-Identifier: Apache-2.0
// A library of runtime 13 with the entry point that several.cpp calls: what nvcc 13 makes of a kernel, beside
// the libraries of older runtimes in one process.
#include <cuda_runtime.h>

#include "client.h"

namespace {
__global__ void newer(float* data) { data[threadIdx.x] += 1; }
}  // namespace

extern "C" int old_run() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  std::printf("runtime %d\n", version);
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  newer<<<1, 32>>>(data);
  step("newer", cudaGetLastError());
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

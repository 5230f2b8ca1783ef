// SPDX-License-Identifier: Apache-2.0
// Relocatable device code (-rdc=true): a kernel that calls a function of another file.
#include <cuda_runtime.h>

#include "client.h"

__device__ float other(float value);
__global__ void relocatable(float* data) { data[threadIdx.x] = other(data[threadIdx.x]); }

int main() {
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  relocatable<<<1, 32>>>(data);
  step("relocatable<<<>>>", cudaGetLastError());
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

// SPDX-License-Identifier: Apache-2.0
// A kernel, by a runtime that another library lends (lender.cpp).
#include <cuda_runtime.h>

#include "client.h"

__global__ void lent(float* data) { data[threadIdx.x] += 1; }

int main() {
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  lent<<<1, 32>>>(data);
  step("lent", cudaGetLastError());
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

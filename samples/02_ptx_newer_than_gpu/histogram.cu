// SPDX-License-Identifier: Apache-2.0
// Counts bytes by value. Shipped as PTX alone, in the hope that every driver will compile it.
#include <cstdio>
#include <cstdlib>

__global__ void histogram(const unsigned char* data, int n, unsigned* bins) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    atomicAdd(&local[data[i]], 1U);
  }
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("histogram: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kBytes = 1 << 20;
  unsigned char* data = nullptr;
  unsigned* bins = nullptr;
  check(cudaMalloc(&data, kBytes), "cudaMalloc");
  check(cudaMemset(data, 7, kBytes), "cudaMemset");
  check(cudaMalloc(&bins, 256 * sizeof(unsigned)), "cudaMalloc");
  check(cudaMemset(bins, 0, 256 * sizeof(unsigned)), "cudaMemset");
  histogram<<<64, 256>>>(data, kBytes, bins);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  std::printf("histogram: done\n");
  return 0;
}

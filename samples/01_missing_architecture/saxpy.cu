// SPDX-License-Identifier: Apache-2.0
// y = a * x + y, built for two architectures only.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void saxpy(int n, float a, const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("saxpy: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kCount = 1 << 16;
  const std::vector<float> host(kCount, 1.0F);
  float* x = nullptr;
  float* y = nullptr;
  check(cudaMalloc(&x, kCount * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&y, kCount * sizeof(float)), "cudaMalloc");
  check(cudaMemcpy(x, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  check(cudaMemcpy(y, host.data(), kCount * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  saxpy<<<(kCount + 255) / 256, 256>>>(kCount, 2.0F, x, y);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  check(cudaFree(x), "cudaFree");
  check(cudaFree(y), "cudaFree");
  std::printf("saxpy: done\n");
  return 0;
}

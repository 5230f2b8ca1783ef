// SPDX-License-Identifier: Apache-2.0
// Stands for a kernel written for Hopper's own instructions (wgmma), as attention libraries have
// them.
#include <cstdio>
#include <cstdlib>

__global__ void attention_forward(const float* query, const float* key, float* scores, int width) {
  const int row = blockIdx.x;
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;");
#endif
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += 128) sum += query[row * width + i] * key[row * width + i];
  atomicAdd(&scores[row], sum);
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("attention: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kRows = 64;
  constexpr int kWidth = 1024;
  float* query = nullptr;
  float* key = nullptr;
  float* scores = nullptr;
  check(cudaMalloc(&query, kRows * kWidth * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&key, kRows * kWidth * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&scores, kRows * sizeof(float)), "cudaMalloc");
  // Real libraries ask for shared memory first, and already that needs the kernel's image.
  check(cudaFuncSetAttribute(attention_forward, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024),
        "cudaFuncSetAttribute");
  attention_forward<<<kRows, 128, 96 * 1024>>>(query, key, scores, kWidth);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  std::printf("attention: done\n");
  return 0;
}

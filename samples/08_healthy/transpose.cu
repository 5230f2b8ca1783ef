// SPDX-License-Identifier: Apache-2.0
// A program that runs everywhere: what kshim says then is one line.
#include <cstdio>
#include <cstdlib>

__global__ void transpose(const float* in, float* out, int width) {
  __shared__ float tile[16][17];
  const int x = blockIdx.x * 16 + threadIdx.x;
  const int y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  out[(blockIdx.x * 16 + threadIdx.y) * width + blockIdx.y * 16 + threadIdx.x] =
      tile[threadIdx.x][threadIdx.y];
}

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("transpose: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kWidth = 512;
  float* in = nullptr;
  float* out = nullptr;
  check(cudaMalloc(&in, kWidth * kWidth * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&out, kWidth * kWidth * sizeof(float)), "cudaMalloc");
  transpose<<<dim3(kWidth / 16, kWidth / 16), dim3(16, 16)>>>(in, out, kWidth);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
  std::printf("transpose: done\n");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Kernels that a guard leaves empty for compute capability 7.5, and two that are the same everywhere.
// All are launched; with an argument, with more threads than there may be.
#include <cstdio>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define WORK(data, count)                                                                      \
  float sum = 0;                                                                               \
  for (int i = 0; i < 64; ++i) sum += data[(threadIdx.x + i) % count] * static_cast<float>(i); \
  data[threadIdx.x] = sum;
#define OTHERWISE(what)
#else
#define WORK(data, count)
#define OTHERWISE(what) what;
#endif

__global__ void returns(float* data, int count){WORK(data, count)} __global__
    void traps(float* data, int count){WORK(data, count) OTHERWISE(__trap())} __global__
    void complains(float* data,
                   int count){WORK(data, count) OTHERWISE(printf("not for this GPU\n"))} __global__
    void same(float* data, int count) {
  data[threadIdx.x] += static_cast<float>(count);
}
__global__ void nothing() {}

int main(int argc, char**) {
  float* data = nullptr;
  if (cudaMalloc(&data, 4096) != cudaSuccess) return 2;
  const int threads = argc > 1 ? 4096 : 32;
  returns<<<1, threads>>>(data, 32);
  traps<<<1, 32>>>(data, 32);
  complains<<<1, 32>>>(data, 32);
  same<<<1, 32>>>(data, 32);
  nothing<<<1, 32>>>();
  return cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess ? 0 : 1;
}

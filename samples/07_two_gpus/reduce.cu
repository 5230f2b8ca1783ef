// SPDX-License-Identifier: Apache-2.0
// The same work on every GPU of the machine.
#include <cstdio>
#include <vector>

__global__ void reduce(const float* data, int n, float* sum) {
  float mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += data[i];
  atomicAdd(sum, mine);
}

static cudaError_t work(int device) {
  constexpr int kCount = 1 << 16;
  float* data = nullptr;
  float* sum = nullptr;
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaMalloc(&data, kCount * sizeof(float));
  if (error == cudaSuccess) error = cudaMalloc(&sum, sizeof(float));
  if (error == cudaSuccess) {
    reduce<<<1, 256>>>(data, kCount, sum);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaDeviceSynchronize();
  return error;
}

int main() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  int failed = 0;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) error = work(device);
    std::printf("reduce: GPU %d, %s: %s\n", device, properties.name,
                error == cudaSuccess ? "done" : cudaGetErrorString(error));
    if (error != cudaSuccess) ++failed;
  }
  if (count == 0) std::printf("reduce: %s\n", cudaGetErrorString(error));
  return failed == 0 && count > 0 ? 0 : 1;
}

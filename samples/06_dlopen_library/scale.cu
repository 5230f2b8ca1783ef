// SPDX-License-Identifier: Apache-2.0
// A plug-in: a shared library with device code and one C function.
#include <cstdio>

namespace plugin {

template <class T>
__global__ void scale(T* data, T factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] *= factor;
}

}  // namespace plugin

/// 0, or the CUDA error's number after a line on stdout.
extern "C" int scale_all(int n) {
  float* data = nullptr;
  cudaError_t error = cudaMalloc(&data, n * sizeof(float));
  if (error == cudaSuccess) {
    plugin::scale<float><<<(n + 255) / 256, 256>>>(data, 0.5F, n);
    error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    cudaFree(data);
  }
  if (error != cudaSuccess) std::printf("libscale.so: %s\n", cudaGetErrorString(error));
  return static_cast<int>(error);
}

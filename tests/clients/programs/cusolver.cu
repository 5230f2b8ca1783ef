// SPDX-License-Identifier: Apache-2.0
#include <cusolverDn.h>

#include "client.h"

int main() {
  constexpr int n = 64;
  cusolverDnHandle_t handle = nullptr;
  if (!step("cusolverDnCreate", cusolverDnCreate(&handle))) return 1;
  float *matrix = nullptr, *work = nullptr;
  int *info = nullptr, size = 0;
  cudaMalloc(&matrix, n * n * sizeof(float));
  cudaMalloc(&info, sizeof(int));
  step("cusolverDnSpotrf_bufferSize",
       cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, n, matrix, n, &size));
  cudaMalloc(&work, (size + 1) * sizeof(float));
  step("cusolverDnSpotrf", cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, n, matrix, n, work, size, info));
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

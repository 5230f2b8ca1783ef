// SPDX-License-Identifier: Apache-2.0
// A sum that nobody checks: the launch fails, the result stays zero, the exit status is 0.
#include <cstdio>

__global__ void sum(const float* values, int count, float* result) {
  float total = 0;
  for (int i = 0; i < count; ++i) total += values[i];
  *result = total;
}

int main() {
  constexpr int kCount = 1000;
  float host[kCount];
  for (float& value : host) value = 1.0F;
  float* values = nullptr;
  float* result = nullptr;
  cudaMalloc(&values, sizeof host);
  cudaMalloc(&result, sizeof(float));
  cudaMemset(result, 0, sizeof(float));
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  sum<<<1, 1>>>(values, kCount, result);
  float total = 0;
  cudaMemcpy(&total, result, sizeof total, cudaMemcpyDeviceToHost);
  std::printf("sum: %g\n", total);
  return 0;
}

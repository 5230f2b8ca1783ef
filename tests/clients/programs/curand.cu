// SPDX-License-Identifier: Apache-2.0
#include <curand.h>

#include "client.h"

int main() {
  curandGenerator_t generator = nullptr;
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096 * sizeof(float)))) return 1;
  if (!step("curandCreateGenerator", curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_PHILOX4_32_10)))
    return 1;
  step("curandGenerateUniform", curandGenerateUniform(generator, data, 4096));
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

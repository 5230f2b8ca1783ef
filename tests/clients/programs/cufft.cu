// SPDX-License-Identifier: Apache-2.0
#include <cufft.h>

#include "client.h"

int main() {
  cufftHandle plan = 0;
  cufftComplex* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4 * 1024 * sizeof(cufftComplex)))) return 1;
  if (!step("cufftPlan1d", cufftPlan1d(&plan, 1024, CUFFT_C2C, 4))) return 1;
  step("cufftExecC2C", cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

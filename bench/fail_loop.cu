// SPDX-License-Identifier: Apache-2.0
// fail_loop first|again N: microseconds of a launch that fails because no image fits: the process's first
// one, or each of N that follow it. Built for one architecture; run it on another.
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void empty(int) {}

static double fail(long launches) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < launches; ++i) {
    empty<<<1, 1>>>(0);
    if (cudaGetLastError() != cudaErrorNoKernelImageForDevice) {
      std::fprintf(stderr, "fail_loop: the launch did not fail\n");
      std::exit(1);
    }
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
         static_cast<double>(launches);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  cudaFree(nullptr);
  const double first = fail(1);
  const bool again = std::strcmp(argv[1], "again") == 0;
  std::printf("%.3f\n", again ? fail(std::atol(argv[2])) : first);
}

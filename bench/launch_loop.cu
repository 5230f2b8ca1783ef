// SPDX-License-Identifier: Apache-2.0
// Nanoseconds a launch, and microseconds a module load, through the real runtime.   launch_loop N ROUNDS
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void empty(int) {}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main(int argc, char** argv) {
  const long launches = argc > 1 ? std::atol(argv[1]) : 1000000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  empty<<<1, 1>>>(0);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
  }
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double start = now();
    for (long i = 0; i < launches; ++i) empty<<<1, 1>>>(0);
    best = std::min(best, (now() - start) / static_cast<double>(launches));
  }
  std::printf("%.2f\n", best * 1e9);
}

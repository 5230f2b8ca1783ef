// SPDX-License-Identifier: Apache-2.0
// launch_loop N ROUNDS THREADS: nanoseconds a launch on each of THREADS threads that launch at once, through
// the real runtime; the smallest round.
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

__global__ void empty(int) {}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double round_of(long launches, int threads) {
  std::atomic<int> waiting{threads};
  std::vector<double> took(static_cast<size_t>(threads));
  const auto work = [&](int thread) {
    empty<<<1, 1>>>(0);
    waiting.fetch_sub(1);
    while (waiting.load() != 0) std::this_thread::yield();
    const double start = now();
    for (long i = 0; i < launches; ++i) empty<<<1, 1>>>(0);
    took[static_cast<size_t>(thread)] = now() - start;
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  return *std::max_element(took.begin(), took.end()) / static_cast<double>(launches);
}

int main(int argc, char** argv) {
  const long launches = argc > 1 ? std::atol(argv[1]) : 1000000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  empty<<<1, 1>>>(0);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    return 1;
  }
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) best = std::min(best, round_of(launches, threads));
  std::printf("%.2f\n", best * 1e9);
}

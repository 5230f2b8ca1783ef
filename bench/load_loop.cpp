// SPDX-License-Identifier: Apache-2.0
// load_loop file|memory COUNT ROUNDS: nanoseconds of one cuModuleLoadData and cuModuleUnload, the smallest
// round; of a fatbin in this program's file, as libraries have them, or of its copy in memory, as run-time
// compilers make them. COUNT stays below the number of loads that a report takes one by one.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

asm(".section .nv_fatbin,\"a\"\n.balign 8\nkImageStart:\n.incbin \"" KSHIM_IMAGE "\"\nkImageEnd:\n.previous");
extern "C" const char kImageStart[], kImageEnd[];

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "load_loop: %s: %d\n", what, result);
  std::exit(1);
}

double round_ns(const void* image, int count) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    CUmodule module = nullptr;
    check(cuModuleLoadData(&module, image), "cuModuleLoadData");
    check(cuModuleUnload(module), "cuModuleUnload");
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: load_loop file|memory COUNT ROUNDS\n");
    return 2;
  }
  const std::vector<char> copy(kImageStart, kImageEnd);
  const void* image = std::strcmp(argv[1], "memory") == 0 ? copy.data() : kImageStart;
  check(cuInit(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < std::atoi(argv[3]); ++round)
    best = std::min(best, round_ns(image, std::atoi(argv[2])));
  std::printf("%.2f\n", best);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// load_loop file|memory|refused|write COUNT ROUNDS: nanoseconds of one cuModuleLoadData and cuModuleUnload,
// the smallest round; of a fatbin in this program's file, as libraries have them, or of its copy in memory,
// as run-time compilers make them. `refused`: of a load that fails, on a device that the image is not for.
// `write`: of one write(2) of as many bytes as a module record has, for comparison. COUNT stays below the
// number of loads that a report takes one by one.
#include <cuda.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

asm(".section .nv_fatbin,\"a\"\n.balign 8\nkImageStart:\n.incbin \"" KSHIM_IMAGE "\"\nkImageEnd:\n.previous");
extern "C" const char kImageStart[], kImageEnd[];

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "load_loop: %s: %d\n", what, result);
  std::exit(1);
}

template <class Action>
double round_ns(int count, Action action) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) action();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: load_loop file|memory|refused|write COUNT ROUNDS\n");
    return 2;
  }
  const std::string_view what = argv[1];
  const std::vector<char> copy(kImageStart, kImageEnd);
  const void* image = what == "memory" ? copy.data() : kImageStart;
  const std::vector<char> line(210, 'x');
  std::FILE* file = std::tmpfile();
  if (file == nullptr) return 1;
  const int out = fileno(file);
  fcntl(out, F_SETFL, O_APPEND);
  check(cuInit(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const auto load = [image] {
    CUmodule module = nullptr;
    check(cuModuleLoadData(&module, image), "cuModuleLoadData");
    check(cuModuleUnload(module), "cuModuleUnload");
  };
  const auto refused = [image] {
    CUmodule module = nullptr;
    if (cuModuleLoadData(&module, image) != CUDA_ERROR_NO_BINARY_FOR_GPU)
      check(CUDA_ERROR_UNKNOWN, "no refusal");
  };
  const auto write_line = [&] {
    if (write(out, line.data(), line.size()) < 0) check(CUDA_ERROR_UNKNOWN, "write");
  };
  const int count = std::atoi(argv[2]);
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < std::atoi(argv[3]); ++round)
    best = std::min(best, what == "write"     ? round_ns(count, write_line)
                          : what == "refused" ? round_ns(count, refused)
                                              : round_ns(count, load));
  std::printf("%.2f\n", best);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// scale_loop libraries COUNT LIBRARY | kernels COUNT | repeats COUNT | file MIB us|kb: much of one thing.
//   libraries  copies LIBRARY COUNT times; opens each copy, looks up a driver function, loads device code and
//              looks a kernel up, and closes them all: microseconds of the processor a library
//   kernels    COUNT different kernels that the driver does not find, then
//   repeats    one of them COUNT times more: microseconds a failure
//   file       a load of a cubin of that size from a file: microseconds
// With kb as the last word: kilobytes that became resident.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

void check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "scale_loop: %s: %d\n", what, result);
  std::exit(1);
}

/// Of the processor's time: a run is long, and other processes take their turns.
double now_us() { return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC; }

double resident_kb() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

std::vector<char> contents(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::string_view kPtx =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry kernel()\n{\nret;\n}\n";

CUmodule load() {
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, kPtx.data()), "cuModuleLoadData");
  return module;
}

void use_library(void* library) {
  check(library == nullptr, "dlopen");
  const auto look_up =
      reinterpret_cast<decltype(&cuModuleGetFunction)>(dlsym(RTLD_DEFAULT, "cuModuleGetFunction"));
  CUfunction function = nullptr;
  check(look_up(&function, load(), "kernel"), "cuModuleGetFunction");
}

double libraries(long count, const char* path) {
  const std::filesystem::path folder = "libraries";
  std::filesystem::create_directory(folder);
  const std::vector<char> bytes = contents(path);
  for (long i = 0; i < count; ++i)
    std::ofstream(folder / (std::to_string(i) + ".so"), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  std::vector<void*> open;
  const double start = now_us();
  for (long i = 0; i < count; ++i) {
    open.push_back(dlopen((folder / (std::to_string(i) + ".so")).c_str(), RTLD_NOW | RTLD_LOCAL));
    use_library(open.back());
  }
  for (void* const library : open) dlclose(library);
  const double took = now_us() - start;
  std::filesystem::remove_all(folder);
  return took / static_cast<double>(count);
}

double failures(long count, bool same) {
  CUmodule module = load();
  const double start = now_us();
  for (long i = 0; i < count; ++i) {
    CUfunction function = nullptr;
    const std::string name = "no_kernel_of_this_name_" + std::to_string(same ? 0 : i);
    if (cuModuleGetFunction(&function, module, name.c_str()) != CUDA_ERROR_NOT_FOUND) check(1, "found");
  }
  return (now_us() - start) / static_cast<double>(count);
}

double file(std::size_t mebibytes) {
  std::vector<char> bytes(kPtx.begin(), kPtx.end());
  bytes.resize(mebibytes << 20U, '\n');
  bytes.push_back(0);
  std::ofstream("large.ptx", std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  double best = 1e30;
  for (int round = 0; round < 5; ++round) {
    CUmodule module = nullptr;
    const double start = now_us();
    check(cuModuleLoad(&module, "large.ptx"), "cuModuleLoad");
    best = std::min(best, now_us() - start);
    check(cuModuleUnload(module), "cuModuleUnload");
  }
  std::filesystem::remove("large.ptx");
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() < 2) return 2;
  const long count = std::atol(argv[2]);
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  if (words[0] == "kernels" || words[0] == "repeats") failures(2000, words[0] == "repeats");
  const double memory = resident_kb();
  const double took = words[0] == "libraries" && argc > 3 ? libraries(count, argv[3])
                      : words[0] == "file"                ? file(static_cast<std::size_t>(count))
                                                          : failures(count, words[0] == "repeats");
  std::printf("%.3f\n", words.back() == "kb" ? resident_kb() - memory : took);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// The driver as a program meets it that looks every function up: a context on device 0, loads and launches.
#pragma once
#include <dlfcn.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

namespace hostile {

template <class Function>
Function driver_function(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* const address = driver == nullptr ? nullptr : dlsym(driver, name);
  if (address == nullptr) _exit(1);  // a small RLIMIT_AS leaves no room for the driver
  return reinterpret_cast<Function>(address);
}

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                       void**, void**);

/// A context is current by thread.
inline int attach(void** kept = nullptr) {
  void* context = nullptr;
  int device = 0;
  int code = driver_function<int (*)(unsigned)>("cuInit")(0);
  if (code == 0) code = driver_function<int (*)(int*, int)>("cuDeviceGet")(&device, 0);
  if (code == 0) code = driver_function<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
  if (kept != nullptr) *kept = context;
  return code != 0 ? code : driver_function<int (*)(void*)>("cuCtxSetCurrent")(context);
}

inline int load(const std::vector<char>& image, void** module) {
  *module = nullptr;
  return driver_function<int (*)(void**, const void*)>("cuModuleLoadData")(module, image.data());
}

inline int look_up(void* module, const char* name, void** function) {
  return driver_function<int (*)(void**, void*, const char*)>("cuModuleGetFunction")(function, module, name);
}

/// `threads` in a block: more than 1,024 is refused (CUDA_ERROR_INVALID_VALUE).
inline int launch(void* function, unsigned threads) {
  void* data = nullptr;
  void* arguments[] = {&data};
  static const auto call = driver_function<Launch>("cuLaunchKernel");
  return call(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr);
}

inline std::vector<char> contents(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace hostile

// SPDX-License-Identifier: Apache-2.0
// driver MODE FATBIN: a client of the driver API, which reaches it as MODE says: dlsym, dlvsym, getproc
// (cuGetProcAddress for everything). driver_needed, which links to libcuda.so.1, is this file with NEEDED.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "client.h"

namespace {

#ifdef NEEDED
#define DRIVER(name) auto* const name##_ = &name
#else
void* g_library;
const char* g_mode;

void* find(const char* name, const char* plain, int version) {
  if (std::strcmp(g_mode, "dlsym") == 0) return dlsym(g_library, name);
  // libcuda.so.1's symbols carry no version: any version asked for is that of a symbol without one.
  if (std::strcmp(g_mode, "dlvsym") == 0) {
    void* found = dlvsym(g_library, name, "libcuda.so.1");
    return found != nullptr ? found : dlsym(g_library, name);
  }
  using GetProc = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  static const auto get = reinterpret_cast<GetProc>(dlsym(g_library, "cuGetProcAddress_v2"));
  void* out = nullptr;
  return get != nullptr && get(plain, &out, version, 0, nullptr) == CUDA_SUCCESS ? out : nullptr;
}
#define TEXT(name) #name
#define EXPORTED(name) TEXT(name)
#define DRIVER(name) \
  auto* const name##_ = reinterpret_cast<decltype(&name)>(find(EXPORTED(name), #name, 12000))
#endif

std::string read_file(const char* path) {
  std::string out;
  if (std::FILE* file = std::fopen(path, "rb")) {
    char buffer[4096];
    for (std::size_t size; (size = std::fread(buffer, 1, sizeof buffer, file)) != 0;)
      out.append(buffer, size);
    std::fclose(file);
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
#ifndef NEEDED
  g_mode = argv[1];
  g_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_library == nullptr) return 3;
#endif
  DRIVER(cuInit);
  DRIVER(cuDeviceGet);
  DRIVER(cuDevicePrimaryCtxRetain);
  DRIVER(cuCtxSetCurrent);
  DRIVER(cuModuleLoadData);
  DRIVER(cuModuleLoad);
  DRIVER(cuModuleGetFunction);
  DRIVER(cuLibraryLoadFromFile);
  DRIVER(cuLibraryGetKernel);
  DRIVER(cuLaunchKernel);
  DRIVER(cuLaunchKernelEx);
  DRIVER(cuMemAlloc);
  const std::string image = read_file(argv[2]);
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (!step("cuInit", cuInit_(0)) || !step("cuDeviceGet", cuDeviceGet_(&device, 0))) return 1;
  step("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain_(&context, device));
  step("cuCtxSetCurrent", cuCtxSetCurrent_(context));
  CUdeviceptr data = 0;
  step("cuMemAlloc", cuMemAlloc_(&data, 4096));
  float factor = 2;
  void* arguments[] = {&data, &factor};
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (step("cuModuleLoadData", cuModuleLoadData_(&module, image.data())) &&
      step("cuModuleGetFunction", cuModuleGetFunction_(&function, module, "scale")))
    step("cuLaunchKernel", cuLaunchKernel_(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  if (step("cuModuleLoad", cuModuleLoad_(&module, argv[2])) &&
      step("cuModuleGetFunction", cuModuleGetFunction_(&function, module, "shift"))) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    step("cuLaunchKernelEx", cuLaunchKernelEx_(&config, function, arguments, nullptr));
  }
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  if (step("cuLibraryLoadFromFile",
           cuLibraryLoadFromFile_(&library, argv[2], nullptr, nullptr, 0, nullptr, nullptr, 0)) &&
      step("cuLibraryGetKernel", cuLibraryGetKernel_(&kernel, library, "scale")))
    step("cuLaunchKernel", cuLaunchKernel_(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 32, 1, 1, 0,
                                           nullptr, arguments, nullptr));
  return g_failed;
}

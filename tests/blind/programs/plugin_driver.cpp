// SPDX-License-Identifier: Apache-2.0
// A plug-in that is linked to libcuda.so.1 and loads its code by itself.
#include <cuda.h>

#include <cstdio>
#include <iterator>
#include <vector>

extern "C" int plugin_run() {
  std::vector<char> image;
  if (std::FILE* file = std::fopen(FATBIN, "rb")) {
    for (int byte = 0; (byte = std::fgetc(file)) != EOF;) image.push_back(static_cast<char>(byte));
    std::fclose(file);
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr data = 0;
  int result = cuInit(0);
  if (result == 0) result = cuDeviceGet(&device, 0);
  if (result == 0) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == 0) result = cuCtxSetCurrent(context);
  if (result == 0) result = cuMemAlloc(&data, 4096);
  if (result == 0) result = cuModuleLoadData(&module, image.data());
  if (result == 0) result = cuModuleGetFunction(&function, module, "plugin_kernel");
  void* arguments[] = {&data};
  if (result == 0) result = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  std::printf("plugin: %d\n", result);
  std::fflush(stdout);
  return result;
}

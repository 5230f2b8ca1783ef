// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API alone, as Triton, CuPy and game engines use it: no runtime, no registration, a file of
// device code beside the program. Another file may be named: kernels_ptx.fatbin.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <string>

static void check(CUresult error, const char* what) {
  if (error == CUDA_SUCCESS) return;
  const char* text = "unknown error";
  cuGetErrorString(error, &text);
  std::printf("blur: %s: %s\n", what, text);
  std::exit(1);
}

int main(int argc, char** argv) {
  const std::string self = argc > 0 ? argv[0] : "";
  const std::string fatbin = self.substr(0, self.rfind('/') + 1) + (argc > 1 ? argv[1] : "kernels.fatbin");
  check(cuInit(0), "cuInit");
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoad(&module, fatbin.c_str()), "cuModuleLoad");
  CUfunction blur = nullptr;
  check(cuModuleGetFunction(&blur, module, "blur"), "cuModuleGetFunction");

  int width = 4096;
  CUdeviceptr in = 0;
  CUdeviceptr out = 0;
  check(cuMemAlloc(&in, static_cast<std::size_t>(width) * sizeof(float)), "cuMemAlloc");
  check(cuMemAlloc(&out, static_cast<std::size_t>(width) * sizeof(float)), "cuMemAlloc");
  void* arguments[] = {&in, &out, &width};
  check(cuLaunchKernel(blur, static_cast<unsigned>(width) / 256U, 1, 1, 256, 1, 1, 0, nullptr, arguments,
                       nullptr),
        "cuLaunchKernel");
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf("blur: done\n");
  return 0;
}

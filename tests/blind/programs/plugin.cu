// SPDX-License-Identifier: Apache-2.0
// A plug-in with one kernel, launched by plugin_run(): built with a static runtime and with the shared one.
#include <cuda_runtime.h>

#include <cstdio>

extern "C" __global__ void plugin_kernel(float* data) { data[threadIdx.x] += 1; }

// What crtbeginS.o does: the runtime's functions of atexit() end with this file. zig's linker has none.
extern "C" void __cxa_finalize(void*);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;
__attribute__((destructor)) static void finalize() {
  __cxa_finalize(__dso_handle);   // of atexit()
  __cxa_finalize(&__dso_handle);  // of static objects
}

extern "C" int plugin_run() {
  float* data = nullptr;
  cudaError_t error = cudaMalloc(&data, 4096);
  if (error == cudaSuccess) {
    plugin_kernel<<<1, 32>>>(data);
    error = cudaGetLastError();
  }
  std::printf("plugin: %d\n", static_cast<int>(error));
  std::fflush(stdout);
  return error;
}

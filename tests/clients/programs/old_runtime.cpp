// SPDX-License-Identifier: Apache-2.0
// A program of runtime 11 or 12: nvcc 13 does not build for them, so this file registers its kernel as nvcc
// 12's own output does (crt/host_runtime.h of that toolkit declares the same functions) and links to that
// libcudart. OLD_AS_LIBRARY makes it a library with old_run().
#include <cstddef>

#include "client.h"

extern "C" {
struct Extent {
  unsigned x, y, z;
};
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* stub, char* name, const char* also_name, int, void*,
                            void*, void*, void*, int*);
int cudaLaunchKernel(const void* stub, Extent grid, Extent block, void** arguments, std::size_t shared,
                     void* stream);
int cudaMalloc(void** out, std::size_t size);
int cudaGetLastError();
int cudaDeviceSynchronize();
int cudaRuntimeGetVersion(int* version);
}

asm(R"(.section .nv_fatbin,"a"
.balign 8
old_fatbin:
.incbin ")" FATBIN R"("
.previous)");
extern "C" const unsigned char old_fatbin[] __attribute__((visibility("hidden")));

namespace {

struct Wrapper {
  int magic, version;
  const void* fatbin;
  void* file;
};
__attribute__((section(".nvFatBinSegment"))) Wrapper g_wrapper = {0x466243b1, 1, old_fatbin, nullptr};
void** g_handle;

void scale(float* data, float factor) {
  void* arguments[] = {&data, &factor};
  cudaLaunchKernel(reinterpret_cast<const void*>(scale), {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr);
}

__attribute__((constructor)) void register_kernel() {
  static char name[] = "scale";
  g_handle = __cudaRegisterFatBinary(&g_wrapper);
  __cudaRegisterFunction(g_handle, reinterpret_cast<const char*>(scale), name, name, -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  __cudaRegisterFatBinaryEnd(g_handle);
}
__attribute__((destructor)) void unregister() { __cudaUnregisterFatBinary(g_handle); }

}  // namespace

extern "C" int old_run() {
  int version = 0;
  cudaRuntimeGetVersion(&version);
  std::printf("runtime %d\n", version);
  void* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  scale(static_cast<float*>(data), 2);
  step("scale", cudaGetLastError());
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

#ifndef OLD_AS_LIBRARY
int main() { return old_run(); }
#endif

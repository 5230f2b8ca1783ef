// SPDX-License-Identifier: Apache-2.0
// A library that gives the runtime to others under its own names, and opens NVIDIA's when the first of them
// is called: as TensorFlow's framework does. The names have no version.
#include <dlfcn.h>

#include <cstddef>

namespace {

void* runtime(const char* name) {
  static void* const file = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
  return file == nullptr ? nullptr : dlsym(file, name);
}

struct Dim3 {
  unsigned x, y, z;
};

}  // namespace

#define LEND(ret, name, params, args)                                                 \
  extern "C" __attribute__((visibility("default"))) ret name params {                 \
    static ret(*const real) params = reinterpret_cast<ret(*) params>(runtime(#name)); \
    return real args;                                                                 \
  }

LEND(int, __cudaGetKernel, (void** kernel, const void* host), (kernel, host))
LEND(char, __cudaInitModule, (void** fatbin), (fatbin))
LEND(int, __cudaLaunchKernel,
     (void* kernel, Dim3 grid, Dim3 block, void** arguments, std::size_t shared, void* stream),
     (kernel, grid, block, arguments, shared, stream))
LEND(int, __cudaPopCallConfiguration, (Dim3 * grid, Dim3* block, std::size_t* shared, void* stream),
     (grid, block, shared, stream))
LEND(unsigned, __cudaPushCallConfiguration, (Dim3 grid, Dim3 block, std::size_t shared, void* stream),
     (grid, block, shared, stream))
LEND(void**, __cudaRegisterFatBinary, (void* wrapper), (wrapper))
LEND(void, __cudaRegisterFatBinaryEnd, (void** fatbin), (fatbin))
LEND(void, __cudaRegisterFunction,
     (void** fatbin, const char* host, char* device, const char* name, int limit, void* a, void* b, void* c,
      void* d, int* size),
     (fatbin, host, device, name, limit, a, b, c, d, size))
LEND(void, __cudaUnregisterFatBinary, (void** fatbin), (fatbin))
LEND(int, cudaDeviceSynchronize, (), ())
LEND(int, cudaGetLastError, (), ())
LEND(int, cudaMalloc, (void** pointer, std::size_t size), (pointer, size))
LEND(int, cudaRuntimeGetVersion, (int* version), (version))

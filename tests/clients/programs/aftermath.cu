// SPDX-License-Identifier: Apache-2.0
// aftermath MODE: what a program makes of an error that a library (prober.cu) leaves.
//   stale        the library probes; the program launches a kernel that works, checks, and reports the
//   library's error
//
//   cleared      the same, but clears the error first
//
//   unchecked    the library's launch is refused, nobody looks, exit status 0
//
//   checked      the same, but the program looks and goes on
//
//   both         two refused launches, one look
//
//   async        the first call of a thread allocates in the order of a stream: the runtime asks twice
//
//   own-reasons  all is well with the program's own kernel, and it ends with 3
#include <cstdio>
#include <cstring>
#include <thread>

extern "C" int probe();
extern "C" void launch();
extern "C" void launch_other();

__global__ void mine(float* data) { *data = 2; }

namespace {

int innocent() {
  float* data = nullptr;
  cudaMalloc(&data, sizeof *data);
  mine<<<1, 1>>>(data);
  const cudaError_t error = cudaGetLastError();
  std::printf("mine: %d\n", error);
  return error == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (std::strcmp(mode, "stale") == 0) return probe(), innocent();
  if (std::strcmp(mode, "cleared") == 0) return probe(), cudaGetLastError(), innocent();
  if (std::strcmp(mode, "unchecked") == 0) return launch(), 0;
  if (std::strcmp(mode, "checked") == 0) return launch(), std::printf("launch: %d\n", cudaGetLastError()), 0;
  if (std::strcmp(mode, "both") == 0) {  // two refused launches, one look
    launch();
    launch_other();
    return std::printf("launches: %d\n", cudaGetLastError()), 0;
  }
  if (std::strcmp(mode, "own-reasons") == 0) return probe(), cudaGetLastError(), innocent(), 3;
  if (std::strcmp(mode, "async") == 0) {
    cudaStream_t stream = nullptr;
    cudaStreamCreate(&stream);
    cudaError_t error = cudaErrorUnknown;
    std::thread([&] {
      void* memory = nullptr;
      error = cudaMallocAsync(&memory, 1024, stream);
    }).join();
    return std::printf("cudaMallocAsync: %d\n", error), error == cudaSuccess ? 0 : 1;
  }
  return 2;
}

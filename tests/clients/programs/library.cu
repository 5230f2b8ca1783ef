// SPDX-License-Identifier: Apache-2.0
// library FATBIN: cudaLibraryLoadData and cudaLibraryLoadFromFile, a kernel of each launched.
#include <cuda_runtime.h>

#include <string>

#include "client.h"

namespace {

void launch(cudaLibrary_t library, const char* name, float* data) {
  cudaKernel_t kernel = nullptr;
  if (!step("cudaLibraryGetKernel", cudaLibraryGetKernel(&kernel, library, name))) return;
  float factor = 2;
  void* arguments[] = {&data, &factor};
  step("cudaLaunchKernel",
       cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 4096))) return 1;
  cudaLibrary_t library = nullptr;
  if (step("cudaLibraryLoadFromFile",
           cudaLibraryLoadFromFile(&library, argv[1], nullptr, nullptr, 0, nullptr, nullptr, 0)))
    launch(library, "scale", data);
  std::string image;
  if (std::FILE* file = std::fopen(argv[1], "rb")) {
    char buffer[4096];
    for (std::size_t size; (size = std::fread(buffer, 1, sizeof buffer, file)) != 0;)
      image.append(buffer, size);
    std::fclose(file);
  }
  if (step("cudaLibraryLoadData",
           cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)))
    launch(library, "shift", data);
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

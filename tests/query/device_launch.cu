// SPDX-License-Identifier: Apache-2.0
// A kernel that launches a kernel: the linker adds a part of libcudadevrt, which has PTX for one
// architecture.
#include <cstdio>

__global__ void launched() {}
__global__ void launches() { launched<<<1, 1>>>(); }

int main() {
  launches<<<1, 1>>>();
  const cudaError_t error = cudaGetLastError();
  std::printf("%d\n", static_cast<int>(error));
  return error == cudaSuccess ? 0 : 1;
}

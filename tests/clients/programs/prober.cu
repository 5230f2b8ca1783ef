// SPDX-License-Identifier: Apache-2.0
// A library that does what NCCL 2.28 does when it starts: it asks for the attributes of a kernel that has no
// image for this GPU, goes on, and leaves the error in the runtime that it shares with the program.
__global__ void for_another_gpu(float* data) { *data = 1; }
__global__ void for_another_gpu_too(float* data) { *data = 2; }

extern "C" int probe() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, for_another_gpu) == cudaSuccess ? 1 : 0;
}

extern "C" void launch_other() { for_another_gpu_too<<<1, 1>>>(nullptr); }

extern "C" void launch() {
  float* data = nullptr;
  cudaMalloc(&data, sizeof *data);
  for_another_gpu<<<1, 1>>>(data);
}

// SPDX-License-Identifier: Apache-2.0
// Two kernels, one of which the author wanted on Ampere and later only.
#include <cstdio>
#include <cstdlib>

__global__ void scale(float* data, float factor) { data[threadIdx.x] *= factor; }

void launch_convert(const float* in, unsigned short* out, int count);

// The host pass (no __CUDA_ARCH__) sees this, so the program compiles and links. What nobody notices: the
// image for sm_75 is left without the kernel.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void convert(const float* in, unsigned short* out) {
  asm("{ .reg .b16 h; cvt.rn.bf16.f32 h, %1; st.global.b16 [%0], h; }" ::"l"(out + threadIdx.x),
      "f"(in[threadIdx.x]));
}

void launch_convert(const float* in, unsigned short* out, int count) { convert<<<1, count>>>(in, out); }
#endif

static void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("convert: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

int main() {
  constexpr int kCount = 256;
  float* data = nullptr;
  unsigned short* half = nullptr;
  check(cudaMalloc(&data, kCount * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&half, kCount * sizeof(unsigned short)), "cudaMalloc");
  scale<<<1, kCount>>>(data, 2.0F);
  check(cudaGetLastError(), "launch of scale");
  launch_convert(data, half, kCount);
  check(cudaGetLastError(), "launch of convert");
  check(cudaDeviceSynchronize(), "kernel");
  std::printf("convert: done\n");
  return 0;
}

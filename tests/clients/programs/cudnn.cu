// SPDX-License-Identifier: Apache-2.0
// cuDNN: one convolution.
#include <cudnn.h>

#include "client.h"

int main() {
  cudnnHandle_t handle = nullptr;
  if (!step("cudnnCreate", cudnnCreate(&handle))) return 1;
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  cudnnCreateTensorDescriptor(&tensor);
  cudnnCreateFilterDescriptor(&filter);
  cudnnCreateConvolutionDescriptor(&convolution);
  cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 8, 16, 16);
  cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 8, 8, 3, 3);
  cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  constexpr auto algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  float* data = nullptr;
  cudaMalloc(&data, 1 << 20);
  std::size_t size = 0;
  step(
      "cudnnGetConvolutionForwardWorkspaceSize",
      cudnnGetConvolutionForwardWorkspaceSize(handle, tensor, filter, convolution, tensor, algorithm, &size));
  void* work = nullptr;
  cudaMalloc(&work, size + 1);
  const float one = 1, zero = 0;
  step("cudnnConvolutionForward",
       cudnnConvolutionForward(handle, &one, tensor, data, filter, data + 8192, convolution, algorithm, work,
                               size, &zero, tensor, data + 16384));
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

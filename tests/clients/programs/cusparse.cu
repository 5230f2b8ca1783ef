// SPDX-License-Identifier: Apache-2.0
#include <cusparse.h>

#include "client.h"

int main() {
  cusparseHandle_t handle = nullptr;
  if (!step("cusparseCreate", cusparseCreate(&handle))) return 1;
  constexpr int n = 4;
  const int offsets[n + 1] = {0, 1, 2, 3, 4};
  int *rows = nullptr, *columns = nullptr;
  float *values = nullptr, *x = nullptr, *y = nullptr;
  cudaMalloc(&rows, sizeof offsets);
  cudaMalloc(&columns, n * sizeof(int));
  cudaMalloc(&values, n * sizeof(float));
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  step("cudaMemcpy", cudaMemcpy(rows, offsets, sizeof offsets, cudaMemcpyHostToDevice));
  cusparseSpMatDescr_t matrix = nullptr;
  cusparseDnVecDescr_t in = nullptr, out = nullptr;
  cusparseCreateCsr(&matrix, n, n, n, rows, columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                    CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseCreateDnVec(&in, n, x, CUDA_R_32F);
  cusparseCreateDnVec(&out, n, y, CUDA_R_32F);
  const float one = 1, zero = 0;
  std::size_t size = 0;
  step("cusparseSpMV_bufferSize",
       cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero, out,
                               CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &size));
  void* buffer = nullptr;
  cudaMalloc(&buffer, size + 1);
  step("cusparseSpMV", cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, matrix, in, &zero, out,
                                    CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

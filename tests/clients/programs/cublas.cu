// SPDX-License-Identifier: Apache-2.0
// cuBLAS and cuBLASLt: one GEMM each.
#include <cublasLt.h>
#include <cublas_v2.h>

#include "client.h"

int main() {
  constexpr int n = 64;
  float* data = nullptr;
  if (!step("cudaMalloc", cudaMalloc(&data, 3 * n * n * sizeof(float)))) return 1;
  const float one = 1, zero = 0;
  cublasHandle_t blas = nullptr;
  if (step("cublasCreate", cublasCreate(&blas)))
    step("cublasSgemm", cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, data, n, data + n * n, n,
                                    &zero, data + 2 * n * n, n));
  cublasLtHandle_t lt = nullptr;
  if (step("cublasLtCreate", cublasLtCreate(&lt))) {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, n, n, n);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    if (step("cublasLtMatmulAlgoGetHeuristic",
             cublasLtMatmulAlgoGetHeuristic(lt, operation, layout, layout, layout, layout, preference, 1,
                                            &best, &found)))
      step("cublasLtMatmul",
           cublasLtMatmul(lt, operation, &one, data, layout, data + n * n, layout, &zero, data + 2 * n * n,
                          layout, data + 2 * n * n, layout, &best.algo, nullptr, 0, nullptr));
  }
  step("cudaDeviceSynchronize", cudaDeviceSynchronize());
  return g_failed;
}

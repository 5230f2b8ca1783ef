// SPDX-License-Identifier: Apache-2.0
#include "kshim/base/cuda_error.h"

namespace kshim {
namespace {
using namespace code_trait;
constexpr CudaError kErrors[] = {
#define KSHIM_CUDA_ERROR(code, driver, runtime, message, traits) {code, driver, runtime, message, traits},
#include "kshim/base/cuda_errors.def"
#undef KSHIM_CUDA_ERROR
};
}  // namespace

const CudaError* find_cuda_error(int code) noexcept {
  for (const CudaError& error : kErrors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace kshim

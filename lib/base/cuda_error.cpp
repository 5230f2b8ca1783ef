// SPDX-License-Identifier: Apache-2.0
#include "kshim/base/cuda_error.h"

#include <algorithm>
#include <iterator>

namespace kshim {
namespace {
using namespace code_trait;
constexpr CudaError kErrors[] = {
#define KSHIM_CUDA_ERROR(code, driver, runtime, message, traits) {code, driver, runtime, message, traits},
#include "kshim/base/cuda_errors.def"
#undef KSHIM_CUDA_ERROR
};
static_assert(std::ranges::is_sorted(kErrors, {}, &CudaError::code));
}  // namespace

const CudaError* find_cuda_error(int code) noexcept {
  const auto* const at = std::ranges::lower_bound(kErrors, code, {}, &CudaError::code);
  return at != std::end(kErrors) && at->code == code ? at : nullptr;
}

}  // namespace kshim

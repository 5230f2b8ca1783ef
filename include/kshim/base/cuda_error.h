// SPDX-License-Identifier: Apache-2.0
// CUDA's error codes by number. Driver (CUresult) and runtime (cudaError_t) share their numbers since
// CUDA 10.1.
#pragma once

namespace kshim {

/// Traits of error codes. cuda_errors.def is the only list.
namespace code_trait {
enum Trait : unsigned {
  plain = 0,
  about_code = 1U << 0,  ///< may be about device code: the available images decide
  limit = 1U << 1,       ///< the launch exceeds a limit of the GPU
  handle = 1U << 2,      ///< invalid handle, or one of another context: an earlier failure may be the cause
  not_found = 1U << 3,   ///< no image or kernel of this name: an earlier failure may be the cause
  ambiguous = 1U << 4,   ///< has several possible causes; alone it does not name one
  says_cuda = 1U << 5,   ///< its message is about CUDA by its wording: "file not found" is not
  telling_number =
      1U << 6,       ///< the number alone is likely CUDA's in a line about CUDA: HTTP's 404 and 500 are not
  sticky = 1U << 7,  ///< a fault of the device or context, which each later call returns again
};
}  // namespace code_trait

struct CudaError {
  int code;
  const char* driver_name;   ///< CUDA_ERROR_NO_BINARY_FOR_GPU; nullptr where only the runtime has the code
  const char* runtime_name;  ///< cudaErrorNoKernelImageForDevice; nullptr where only the driver has it
  const char* message;       ///< what cudaGetErrorString says
  unsigned traits;           ///< code_trait::Trait, joined by |
};

/// nullptr for a number that no header has.
const CudaError* find_cuda_error(int code) noexcept;

/// Whether the code has one of the traits; false for a number that no header has.
inline bool code_has(int code, unsigned traits) noexcept {
  const CudaError* const error = find_cuda_error(code);
  return error != nullptr && (error->traits & traits) != 0;
}

}  // namespace kshim

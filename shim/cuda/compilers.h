// SPDX-License-Identifier: Apache-2.0
// Watches calls of NVIDIA's compiler libraries, NVRTC and nvJitLink, for one error: an architecture that the
// library does not compile for. Rows in compilers.def. A process may hold several copies of such a library
// (the toolkit's, each wheel's), and a program handle belongs to one of them: a call always reaches the copy
// that it would reach without the shim.
#pragma once
#include <string_view>

#include "cuda/cuda_abi.h"
#include "cuda/real_functions.h"

namespace kshim::shim {

/// The function in the library that defines `node` and that the caller is linked to; nullptr where there is
/// none.
AnyFunction find_compiler(Hook hook, std::string_view node, const void* caller) noexcept;
/// Whether a mapped file other than the shim defines the function.
bool has_compiler(Hook hook) noexcept;

}  // namespace kshim::shim

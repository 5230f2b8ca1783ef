// SPDX-License-Identifier: Apache-2.0
// Calls of NVIDIA's compiler libraries, NVRTC and nvJitLink, in the process: seen for one thing, an
// architecture that the library does not compile for. Rows in compilers.def. Several copies of such a library
// live in one process (the toolkit's, each wheel's), and a program handle belongs to one of them: a call
// always goes on to the copy that it would have reached without the shim.
#pragma once
#include <string_view>

#include "cuda/cuda_abi.h"
#include "cuda/next_symbol.h"

namespace kshim::shim {

/// For the exports: on to the library that defines `node` and that the caller is linked to.
abi::Result call_compiler(Hook hook, std::string_view node, const void* caller, void* program, unsigned count,
                          const char* const* options) noexcept;
/// For dlsym: a wrapper that calls `address` and nothing else, or `address` itself when all wrappers are
/// taken.
AnyFunction compiler_wrapper(Hook hook, AnyFunction address) noexcept;
/// Whether a mapped file other than the shim defines the function.
bool has_compiler(Hook hook) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// What the wrappers of registration (runtime_exports.cpp) hand over.
#pragma once
#include "cuda/cuda_abi.h"
#include "cuda/hooks.h"

namespace kshim::shim::registered {

/// What the wrappers of a runtime's registration tell once the real function has returned. registration.cpp.
void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept;
void fatbin_complete(abi::FatbinHandle handle) noexcept;
void fatbin_gone(abi::FatbinHandle handle) noexcept;
void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept;

}  // namespace kshim::shim::registered

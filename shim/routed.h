// SPDX-License-Identifier: Apache-2.0
// The functions of hooks.def that have their body by hand.
#pragma once
#include "cuda_abi.h"
#include "hooks.h"

namespace kshim::shim::routed {

/// `caller`: return address of the wrapper. route.cpp.
abi::Result cuGetProcAddress(const char* symbol, void** pfn, int version, std::uint64_t flags,
                             const void* caller) noexcept;
abi::Result cuGetProcAddress_v2(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                abi::Enum* status, const void* caller) noexcept;

}  // namespace kshim::shim::routed

namespace kshim::shim::registered {

/// What the wrappers of a runtime's registration tell once the real function has returned. registration.cpp.
void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept;
void fatbin_complete(abi::FatbinHandle handle) noexcept;
void fatbin_gone(abi::FatbinHandle handle) noexcept;
void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept;

}  // namespace kshim::shim::registered

// SPDX-License-Identifier: Apache-2.0
// Returns wrappers to programs that look entry points up by name: dlsym, dlvsym and cuGetProcAddress. A name
// does not identify a function (versions, per-thread streams), so the wrapper is chosen by the ADDRESS that
// the real look-up returned. Unknown addresses are returned unchanged.
#pragma once
#include <cstdint>

#include "cuda/cuda_abi.h"
#include "cuda/real_functions.h"

namespace kshim::shim {

/// The result for the assembly thunk of dlsym, which jumps to the real dlsym unless `handled`.
struct LookupAnswer {
  void* address;
  std::uintptr_t handled;
};

// What programs get instead of the real functions.

/// Of the driver.
AnyFunction routed_wrapper(Hook hook) noexcept;
AnyFunction runtime_wrapper(Runtime runtime, Hook hook) noexcept;
/// A wrapper that calls `address` and nothing else, or `address` itself when all wrappers are taken.
AnyFunction compiler_wrapper(Hook hook, AnyFunction address) noexcept;
/// By the rows of slots.def.
const AnyFunction* table_wrappers() noexcept;
/// With KSHIM_COVERAGE: launches are counted from now on.
void count_launches() noexcept;

/// The wrapper for a real function, or `address` itself.
AnyFunction wrap_driver_function(AnyFunction address) noexcept;

/// Replaces the address that cuGetProcAddress returned by the wrapper's. `caller`: return address of that
/// call.
void wrap_get_proc_address_result(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                  const void* caller) noexcept;

}  // namespace kshim::shim

extern "C" {
/// Called by dlsym_ARCH.S for names that begin with "cu" or "nv", with the return address of the caller of
/// dlsym.
kshim::shim::LookupAnswer kshim_look_up(void* handle, const char* name, const void* caller,
                                        const char* version) noexcept;
/// Fills kshim_real_dlsym and kshim_real_dlvsym; called by the thunks when they are still empty.
void kshim_find_real_lookups(void) noexcept;
}

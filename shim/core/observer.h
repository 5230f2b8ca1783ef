// SPDX-License-Identifier: Apache-2.0
// The events that wrappers report. A wrapper calls the real function, tests the result and returns. If the
// test fails, it passes the arguments on as CallArgs (cuda/call_args.h); the rest is off the hot path.
#pragma once
#include <atomic>
#include <cstdint>

#include "cuda/call_args.h"
#include "cuda/real_functions.h"
#include "track/compiler_errors.h"

namespace kshim::shim {

/// The number of driver errors in this process that are held until the enclosing runtime call returns.
extern std::atomic<std::uint32_t> g_pending;

// All of these functions preserve errno.

/// cuInit: the report begins before it, driver and devices are written after it. False where no driver is
/// mapped: the function that is called is a library's own.
bool on_init_begins() noexcept;
/// `begun`: the answer of on_init_begins().
void on_init(const CallArgs& facts, bool begun) noexcept;
/// A driver call failed.
void on_call_failed(const CallArgs& facts) noexcept;
/// A hooked runtime call returned, and it failed or g_pending is not 0.
void on_runtime_returned(const CallArgs& facts) noexcept;
/// A load returned; `begin` is load_begins() of before. `handle`: what it has written, 0 when it failed.
std::uint64_t load_begins() noexcept;
void on_load(const CallArgs& facts, std::uint64_t begin, std::uintptr_t handle) noexcept;
/// A load is about to be unloaded.
void unload_begins(std::uintptr_t handle) noexcept;
/// A look-up succeeded: `handle` is now known under a name, or means what another handle means.
void on_lookup(const CallArgs& facts, std::uintptr_t handle) noexcept;
/// cudaGetLastError or cudaPeekAtLastError returned an error.
void on_error_read(Hook hook, abi::Result code, const void* caller) noexcept;
/// A shared runtime's registration: __cudaRegisterFatBinary, __cudaRegisterFunction and
/// __cudaRegisterFatBinaryEnd returned; __cudaUnregisterFatBinary is about to be called.
void on_fatbin_registered(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept;
void on_kernel_registered(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept;
void on_fatbin_complete() noexcept;
void on_fatbin_unregistered(abi::FatbinHandle handle) noexcept;
/// cuGetExportTable has answered `caller` with *table. `wrappers`: as watch_load_table() has them.
void on_export_table(const void* const* table, const abi::Uuid* id, const void* caller,
                     const AnyFunction* wrappers) noexcept;
/// A call of a compiler library failed: recorded where the library refuses an architecture.
void on_compiler_failed(const CompilerCall& call) noexcept;
/// With KSHIM_COVERAGE: a launch of the CUfunction or CUkernel succeeded.
void on_launch(std::uintptr_t handle) noexcept;

struct Resolved {
  AnyFunction function = nullptr;  ///< nullptr: there is none, which `absent` answers
  bool is_plugins = false;         ///< a plug-in's own
};
/// Finds the real function, and fills the table of them unless a library is being closed.
Resolved resolve_export(Hook hook, const void* caller) noexcept;
Resolved resolve_routed(Hook hook, const void* caller) noexcept;
AnyFunction resolve_runtime(Runtime runtime, Hook hook) noexcept;
/// The result of a driver or runtime function that does not exist. Only programs that test for it by a weak
/// reference, or call it while its library is unloaded, get it.
abi::Result absent(Hook hook) noexcept;
abi::Result absent(Runtime runtime, Hook hook) noexcept;

/// Passes a failed call on and returns its code. SelectArgs drops the arguments that a report cannot use, so
/// the launch path does not carry them across the real call; report_cold is out of line for the same reason.
using Callback = void (*)(const CallArgs&) noexcept;
template <Callback kCallback, class... Kept>
[[gnu::noinline, gnu::cold]] abi::Result report_cold(Hook hook, abi::Result code, const void* caller,
                                                     Kept... kept) noexcept {
  kCallback(args_of(hook, code, caller, kept...));
  return code;
}
template <Callback kCallback, class... Kept>
struct SelectArgs {
  [[gnu::always_inline]] static abi::Result from(Hook hook, abi::Result code, const void* caller,
                                                 Kept... kept) noexcept {
    return report_cold<kCallback, Kept...>(hook, code, caller, kept...);
  }
  template <class First, class... Rest>
  [[gnu::always_inline]] static abi::Result from(Hook hook, abi::Result code, const void* caller,
                                                 Kept... kept, First first, Rest... rest) noexcept {
    if constexpr (kIsReportable<First>)
      return SelectArgs<kCallback, Kept..., First>::from(hook, code, caller, kept..., first, rest...);
    else
      return SelectArgs<kCallback, Kept...>::from(hook, code, caller, kept..., rest...);
  }
};

}  // namespace kshim::shim

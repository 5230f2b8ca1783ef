// SPDX-License-Identifier: Apache-2.0
// The next definitions of the functions that the shim interposes: another interposer's, if it was loaded at
// program start, else those of libcuda or of the runtime, however that was opened.
#pragma once
#include <atomic>
#include <cstdint>

#include "cuda/hooks.h"
#include "process/loaded_objects.h"

namespace kshim::shim {

using AnyFunction = void*;

/// Constant-initialized; read on the launch path with one load. Empty while any thread is in dlclose: a call
/// in that time asks whether the function is still mapped.
extern std::atomic<AnyFunction> g_driver_rtld_next[kHookCount];  ///< the next definition in link order
extern std::atomic<AnyFunction> g_libcuda_entry[kHookCount];     ///< libcuda's, whatever stands before it
/// libcuda's functions. They differ from g_libcuda_entry only if launches are counted (coverage.h).
extern std::atomic<AnyFunction> g_driver_address[kHookCount];
extern std::atomic<AnyFunction> g_runtime_real[kRuntimeCount][kHookCount];

/// Whether the next definition in link order is libcuda's function, with nothing between.
bool is_driver_next(Hook hook) noexcept;
/// Whether an object that was loaded at program start defines a driver function behind the shim.
bool has_next_at_start(Hook hook) noexcept;

inline AnyFunction driver_export(Hook hook) noexcept {
  return g_driver_rtld_next[index_of(hook)].load(std::memory_order_relaxed);
}
/// What was found, if it is still mapped; nullptr if not.
AnyFunction known_runtime(Runtime runtime, Hook hook) noexcept;
inline AnyFunction driver_routed(Hook hook) noexcept {
  return g_libcuda_entry[index_of(hook)].load(std::memory_order_relaxed);
}
inline AnyFunction runtime_real(Runtime runtime, Hook hook) noexcept {
  return g_runtime_real[static_cast<std::size_t>(runtime)][index_of(hook)].load(std::memory_order_relaxed);
}

/// The row of the function that libcuda has at an address; kHookCount when no hook is there.
std::size_t row_at(AnyFunction address) noexcept;

/// Fills the tables from the loaded objects; nullptr for functions that none of them defines.
void find_driver() noexcept;
/// The same for one function of the driver (`exported`: the next definition, else libcuda's own).
AnyFunction find_driver(Hook hook, bool exported) noexcept;
/// Where find_driver() finds none: the function of the caller's own file, or of one that this is linked to,
/// which the linker would have taken without the shim. A plugin may be unloaded, so this is asked at each
/// call.
AnyFunction find_own(Hook hook, const void* caller) noexcept;
/// Whether a file is that runtime or a replacement: it defines the version that references to the runtime
/// carry. Sonames are not reliable: wheels rename the file (libcudart-e409450e.so.11.0).
inline bool is_runtime(const LoadedElf& elf, Runtime runtime) noexcept {
  return elf.defines_version(kRuntimeSonames[static_cast<std::size_t>(runtime)]);
}
AnyFunction find_runtime(Runtime runtime, Hook hook) noexcept;
/// Fills a runtime's table if it has none: its library was unloaded, and may be mapped elsewhere now.
void recheck_runtime(Runtime runtime) noexcept;
/// The file that a runtime's table was filled from, or a false object.
LoadedObject runtime_object(Runtime runtime) noexcept;
/// Where it begins; 0 = there is none.
std::uintptr_t runtime_address(Runtime runtime) noexcept;
/// Around a dlclose of the program, which may unload the driver or a runtime. Another thread may open it
/// again at once, at another address, and call it, so the tables are empty meanwhile.
void close_begins() noexcept;
void close_ends() noexcept;
/// In a child of fork, which does not have the threads of its parent that are in dlclose.
void forget_closing_threads() noexcept;
/// Whether no thread is in dlclose, or was since count_closes() had that answer.
bool nothing_closed_since(std::uint64_t closes) noexcept;
std::uint64_t count_closes() noexcept;

/// The driver hands out this address for a function: the wrapper goes on to it.
void set_driver_own(Hook hook, AnyFunction address) noexcept;

/// A driver function that is not hooked, for calls by the shim itself; nullptr before a driver is known.
/// `pages`: what is read through, or nullptr.
AnyFunction driver_function(const char* name, PageCache* pages = nullptr) noexcept;
/// The number of the driver's mapping (LoadedObject::mapping_id); 0 = none. While it is the same, addresses
/// in the driver stay valid.
std::uint64_t current_driver() noexcept;
/// The libcuda that find_driver() found, or a false object.
LoadedObject driver_object() noexcept;
/// Where the driver that find_driver() found is mapped from; empty when there is none.
std::string_view driver_path() noexcept;
/// Makes `object` the libcuda that the wrappers call, unless another one is loaded that they call already.
/// Returns whether they call `object`.
bool adopt_driver(const LoadedObject& object) noexcept;
/// The address lies in libcuda: a call from there is the driver calling itself.
bool in_driver(const void* address) noexcept;
/// With KSHIM_COVERAGE, the driver's functions are called through what this answers: a function that counts a
/// launch before it goes on to `real`, or `real` itself.
using WrapLaunch = AnyFunction (*)(Hook hook, bool exported, AnyFunction real) noexcept;
void wrap_launches(WrapLaunch wrap) noexcept;

}  // namespace kshim::shim

/// The next dlsym and dlvsym after the shim in link order, once they have been found.
extern "C" {
[[gnu::visibility("hidden")]] extern void* kshim_real_dlsym;
[[gnu::visibility("hidden")]] extern void* kshim_real_dlvsym;
}

// SPDX-License-Identifier: Apache-2.0
// The name and the module of each handle. Filled when look-ups and loads succeed, read when a call fails.
// Lock-free, mapped at first use, of fixed size: new names replace the oldest ones, and a handle that the
// driver reuses gets its new meaning.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// A copy of what is known of a CUmodule, CUlibrary, CUfunction or CUkernel; 0 and empty if unknown.
struct HandleInfo {
  static constexpr std::size_t kMaxNameLength = 16384;  ///< longer ones are not kept
  std::uint64_t module = 0;                             ///< number of the load (modules.h)
  std::size_t name_size = 0;
  char name_text[kMaxNameLength];
  std::string_view name() const noexcept { return {name_text, name_size}; }  ///< mangled
};

/// A load gave this handle. Like the next two: true where the handle meant something else before.
bool remember_load(std::uintptr_t handle, std::uint64_t module) noexcept;
/// `handle` is the function or the kernel of that name in `source`, a handle too; 0 = not known in which.
bool remember_name(std::uintptr_t handle, std::string_view name, std::uintptr_t source) noexcept;
/// `handle` means what `source` means.
bool remember_alias(std::uintptr_t handle, std::uintptr_t source) noexcept;
/// The load was unloaded: neither its handle nor those that were found in it mean anything, unless another
/// thread has got the same handle for another load meanwhile.
void forget_load(std::uintptr_t handle, std::uint64_t module) noexcept;
bool handle_has_name(std::uintptr_t handle, std::string_view name) noexcept;
/// The number of the load alone; 0 where it is not known.
std::uint64_t module_of_handle(std::uintptr_t handle) noexcept;
void recall_handle(std::uintptr_t handle, HandleInfo& out) noexcept;

}  // namespace kshim::shim

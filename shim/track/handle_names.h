// SPDX-License-Identifier: Apache-2.0
// Which name and which module a handle stands for. Filled when look-ups and loads succeed, read when
// something fails. Lock-free, fixed size; a handle that is given out again overwrites what it meant before.
#pragma once
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// What is known of a CUmodule, CUlibrary, CUfunction or CUkernel. 0 and empty where nothing is.
struct HandleFacts {
  std::string_view name;     ///< mangled; kept for ever
  std::uint64_t module = 0;  ///< number of the load (modules.h)
};

void remember_handle(std::uintptr_t handle, std::string_view name, std::uint64_t module) noexcept;
HandleFacts recall_handle(std::uintptr_t handle) noexcept;

}  // namespace kshim::shim

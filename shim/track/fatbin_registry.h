// SPDX-License-Identifier: Apache-2.0
// What programs register with a shared runtime: fatbins, and which host stub stands for which kernel of them.
// Texts are the program's; a fatbin that is unregistered takes its kernels along.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kshim::shim {

struct Registered {
  std::string_view kernel;     ///< mangled; empty = not known
  std::uintptr_t wrapper = 0;  ///< of the fatbin that holds it
};
/// By the address of a host stub.
Registered registered_kernel(std::uintptr_t host) noexcept;

/// The kernels registered for a fatbin wrapper's fatbin.
struct KernelNames {
  static constexpr std::size_t kMax = 512;
  std::string_view names[kMax];
  std::size_t count = 0;
  std::uint64_t total = 0;  ///< with those that did not fit, where they were counted
  bool complete = false;    ///< the program registered them all, and they all fit
  std::span<const std::string_view> all() const noexcept { return {names, count}; }
};
/// `fatbin`: address of the fatbin itself (DeviceCode::address).
void registered_kernels(std::uintptr_t fatbin, KernelNames& out) noexcept;

}  // namespace kshim::shim

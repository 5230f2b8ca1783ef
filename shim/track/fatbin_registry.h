// SPDX-License-Identifier: Apache-2.0
// What programs register with a shared runtime: fatbins, and which host stub stands for which kernel of them.
// Texts are the program's; a fatbin that is unregistered takes its kernels along.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "cuda/cuda_abi.h"

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

/// What the wrappers of a runtime's registration tell once the real function has returned.
namespace registered {
void fatbin(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept;
/// 0 where the fatbin is not known.
std::uintptr_t wrapper_of(abi::FatbinHandle handle) noexcept;
void fatbin_gone(abi::FatbinHandle handle) noexcept;
void kernel(abi::FatbinHandle handle, std::uintptr_t host, const char* name) noexcept;
}  // namespace registered

}  // namespace kshim::shim

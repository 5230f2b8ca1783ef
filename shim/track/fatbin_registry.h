// SPDX-License-Identifier: Apache-2.0
// What programs register with a shared runtime: fatbins, and the host stub of each kernel. Texts lie in the
// program's memory. When a fatbin is unregistered, its kernels are forgotten. A program registers 100,000
// kernels while it starts, so these tables have a lock of their own, which blocks no signal.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "cuda/cuda_abi.h"

namespace kshim::shim {

/// One call of __cudaRegisterFatBinary, __cudaRegisterFunction or __cudaUnregisterFatBinary.
struct Registration {
  abi::FatbinHandle handle = nullptr;
  std::uintptr_t address = 0;    ///< of the fatbin's wrapper, or of the kernel's host stub
  std::uintptr_t fatbin = 0;     ///< address of the fatbin itself; 0 = no fatbin is registered
  const char* kernel = nullptr;  ///< mangled name of a kernel; without it and without a fatbin: unregistered
};
/// `wrapper` is the argument of the program's own constructor, so it can be read.
Registration fatbin_registration(abi::FatbinHandle handle, std::uintptr_t wrapper) noexcept;
void add_registration(const Registration& registration) noexcept;

struct Registered {
  std::string_view kernel;     ///< mangled; empty = not known
  std::uintptr_t wrapper = 0;  ///< of the fatbin that holds it
};

/// The kernels registered for a fatbin.
struct KernelNames {
  static constexpr std::size_t kMax = 512;
  std::string_view names[kMax];
  std::size_t count = 0;
  std::uint64_t total = 0;  ///< with those that did not fit, where they were counted
  bool complete = false;    ///< the program registered them all, and they all fit
  std::span<const std::string_view> all() const noexcept { return {names, count}; }
};

/// By the address of a host stub.
Registered find_registered(std::uintptr_t host) noexcept;
/// Appends the names of a fatbin's kernels to `out`. `fatbin`: address of the fatbin itself
/// (DeviceCode::address).
void list_registered(std::uintptr_t fatbin, KernelNames& out) noexcept;

}  // namespace kshim::shim

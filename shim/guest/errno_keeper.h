// SPDX-License-Identifier: Apache-2.0
// Saves errno and restores it at the end of the scope: around what calls libc or the driver. The shim's own
// system calls leave it alone.
#pragma once
#include <atomic>

namespace kshim::shim {

/// libc's __errno_location, which the constructor finds (lifetime.cpp). A program may define a function of
/// that name, which is for its own threads. nullptr: none is known, nothing is kept.
using ErrnoFn = int* (*)();
inline constinit std::atomic<ErrnoFn> g_errno_location{nullptr};

class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept {
    const ErrnoFn location = g_errno_location.load(std::memory_order_relaxed);
    if (location == nullptr) return;
    place_ = location();
    saved_ = *place_;
  }
  ~ErrnoKeeper() {
    if (place_ != nullptr) *place_ = saved_;
  }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int* place_ = nullptr;
  int saved_ = 0;
};

}  // namespace kshim::shim

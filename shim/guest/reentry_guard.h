// SPDX-License-Identifier: Apache-2.0
// This thread is inside the shim: what a signal handler or a driver function that the shim asks does
// meanwhile is not noted, so that nobody waits for himself.
#pragma once
#include <signal.h>

#include <cstdint>

#include "guest/scratch_stack.h"
#include "guest/syscalls.h"

namespace kshim::shim {

/// Frame of the function that is inside; 0 = none.
extern constinit thread_local std::uintptr_t t_busy;

class Busy {
 public:
  [[gnu::always_inline]] Busy() noexcept
      : Busy(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))) {}
  ~Busy() {
    if (first_) t_busy = 0;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  explicit operator bool() const noexcept { return first_; }

 private:
  explicit Busy(std::uintptr_t frame) noexcept : first_(t_busy == 0 || was_left(frame)) {
    if (first_) t_busy = frame;
  }
  /// Whoever is called by the one inside has a deeper frame, which is a lower address. One as high as his, or
  /// higher, means that his is gone: a signal handler of the host's jumped out of the shim (siglongjmp). A
  /// handler's own stack may lie anywhere and tells nothing, nor do those of the shim.
  static bool was_left(std::uintptr_t frame) noexcept {
    if (frame < t_busy || is_on_own_stack(frame)) return false;
    stack_t stack{};
    return raw::signal_stack(stack) == 0 && (stack.ss_flags & SS_ONSTACK) == 0;
  }

  bool first_;
};

}  // namespace kshim::shim

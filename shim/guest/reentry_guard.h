// SPDX-License-Identifier: Apache-2.0
// Marks this thread as inside the shim. All signals are blocked meanwhile, so no handler of the host runs
// there. Calls that the driver makes while the shim calls it are not recorded.
#pragma once
#include <cstdint>

#include "guest/signals.h"

namespace kshim::shim {

extern constinit thread_local bool t_inside;

class ReentryGuard {
 public:
  // A flag that is set while signals are not blocked is stale: the host left a fault's handler by siglongjmp,
  // which restored the signal mask.
  ReentryGuard() noexcept : entered_(!t_inside || !held_.were_blocked()) {
    if (!entered_) return;
    t_inside = true;
    t_host_mask = held_.before();
  }
  ~ReentryGuard() {
    if (entered_) t_inside = false;
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
  /// False where this thread was inside already.
  explicit operator bool() const noexcept { return entered_; }

 private:
  const ScopedBlockSignals held_;
  bool entered_;
};

}  // namespace kshim::shim

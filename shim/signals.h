// SPDX-License-Identifier: Apache-2.0
// A write of ours must not bring the host a signal: SIGPIPE from a closed stderr, SIGXFSZ from a size limit.
#pragma once
#include <signal.h>

#include "system_calls.h"

namespace kshim::shim {

/// Holds back one synchronous signal of this thread and takes it away if it came meanwhile. One that was
/// pending before, or that the host itself blocks, stays as it was.
class SignalShield {
 public:
  explicit SignalShield(int signal) noexcept : signal_(signal) {
    sigset_t pending;
    sigemptyset(&pending);
    raw::pending_signals(pending);
    was_pending_ = sigismember(&pending, signal_) == 1;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, signal_);
    armed_ = raw::change_mask(SIG_BLOCK, blocked, &before_) == 0;
  }
  ~SignalShield() {
    if (!armed_) return;
    if (!was_pending_) {
      sigset_t mine;
      sigemptyset(&mine);
      sigaddset(&mine, signal_);
      raw::discard_signal(mine);
    }
    raw::change_mask(SIG_SETMASK, before_, nullptr);
  }
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;

 private:
  sigset_t before_{};
  int signal_;
  bool was_pending_ = false;
  bool armed_ = false;
};

}  // namespace kshim::shim

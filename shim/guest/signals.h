// SPDX-License-Identifier: Apache-2.0
// A write of ours must not bring the host a signal: SIGPIPE from a closed stderr, SIGXFSZ from a size limit.
// And a signal of the host's must not interrupt us while libc's locks are held.
#pragma once
#include <signal.h>

#include <cerrno>

#include "guest/syscalls.h"

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

/// Holds back the signals that come to this thread from elsewhere, for as long as a lock of libc's is held: a
/// handler that jumps (siglongjmp) would leave it locked for everybody. Not those of the thread's own faults,
/// which cannot be held back.
class AllSignalsHeld {
 public:
  AllSignalsHeld() noexcept {
    const int error = errno;
    constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    std::uint64_t mask = ~std::uint64_t{0};  // as the kernel has it: signal n is bit n-1
    for (const int fault : kFaults) mask &= ~(std::uint64_t{1} << static_cast<unsigned>(fault - 1));
    sigset_t all{};
    __builtin_memcpy(&all, &mask, sizeof mask);
    armed_ = raw::change_mask(SIG_BLOCK, all, &before_) == 0;
    errno = error;  // a sandbox may have refused
  }
  ~AllSignalsHeld() {
    if (armed_) raw::change_mask(SIG_SETMASK, before_, nullptr);
  }
  AllSignalsHeld(const AllSignalsHeld&) = delete;
  AllSignalsHeld& operator=(const AllSignalsHeld&) = delete;

 private:
  sigset_t before_{};
  bool armed_ = false;
};

}  // namespace kshim::shim

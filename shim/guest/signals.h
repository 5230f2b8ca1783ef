// SPDX-License-Identifier: Apache-2.0
// Signals of the calling thread, blocked for a while.
#pragma once
#include <signal.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "guest/syscalls.h"

namespace kshim::shim {

constexpr raw::SignalSet signal_bit(int signal) noexcept {
  return raw::SignalSet{1} << static_cast<unsigned>(signal - 1);
}

/// All signals except those that faults of this thread raise: with these blocked, a fault ends the process.
constexpr raw::SignalSet kBlockable = ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) |
                                        signal_bit(SIGFPE) | signal_bit(SIGTRAP) | signal_bit(SIGSYS));

/// A write by the shim must not raise a signal in the host: SIGPIPE from a closed stderr, SIGXFSZ from a size
/// limit. Blocks one such signal in this thread and discards it if it arrives. A signal that was pending
/// before stays pending.
class ScopedSuppressSignal {
 public:
  explicit ScopedSuppressSignal(int signal) noexcept : signal_(signal_bit(signal)) {
    raw::SignalSet pending = 0;
    raw::pending_signals(pending);
    was_pending_ = (pending & signal_) != 0;
    armed_ = raw::change_mask(SIG_BLOCK, signal_, &before_) == 0;
  }
  ~ScopedSuppressSignal() {
    if (!armed_) return;
    if (!was_pending_) raw::discard_signal(signal_);
    raw::change_mask(SIG_SETMASK, before_, nullptr);
  }
  ScopedSuppressSignal(const ScopedSuppressSignal&) = delete;
  ScopedSuppressSignal& operator=(const ScopedSuppressSignal&) = delete;

 private:
  raw::SignalSet signal_;
  raw::SignalSet before_ = 0;
  bool was_pending_ = false;
  bool armed_ = false;
};

/// Blocks all signals but faults. Nothing interrupts this thread meanwhile, so a handler cannot jump out of
/// the shim, cancel the thread, or stop it (collectors do) where it runs on a stack of the shim's.
class ScopedBlockSignals {
 public:
  /// `needed`: false where the caller knows that they are blocked.
  explicit ScopedBlockSignals(bool needed = true) noexcept {
    if (!needed) return;
    const int error = errno;
    armed_ = raw::change_mask(SIG_BLOCK, kBlockable, &before_) == 0;
    errno = error;  // a sandbox may have refused
  }
  ~ScopedBlockSignals() {
    if (armed_) raw::change_mask(SIG_SETMASK, before_, nullptr);
  }
  ScopedBlockSignals(const ScopedBlockSignals&) = delete;
  ScopedBlockSignals& operator=(const ScopedBlockSignals&) = delete;
  /// What was blocked before.
  raw::SignalSet before() const noexcept { return before_; }
  /// They were blocked already.
  bool were_blocked() const noexcept { return armed_ && (before_ & kBlockableByAll) == kBlockableByAll; }

 private:
  // SIGKILL and SIGSTOP cannot be blocked.
  static constexpr raw::SignalSet kBlockableByAll = kBlockable & ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
  raw::SignalSet before_ = 0;
  bool armed_ = false;
};

/// The host's own mask while this thread is inside the shim.
extern constinit thread_local raw::SignalSet t_host_mask;

/// Around system calls that may wait for a file system that does not answer. Signals that would end the
/// program, and for which it has no handler, end it there: no code of the host's runs inside the shim.
class ScopedDeadlySignals {
 public:
  explicit ScopedDeadlySignals(bool needed) noexcept {
    if (!needed) return;
    const int error = errno;
    raw::SignalSet deadly = 0;
    for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGTERM, SIGXCPU})
      if ((t_host_mask & signal_bit(signal)) == 0 && raw::is_default(signal)) deadly |= signal_bit(signal);
    armed_ = deadly != 0 && raw::change_mask(SIG_UNBLOCK, deadly, &before_) == 0;
    errno = error;
  }
  ~ScopedDeadlySignals() {
    const int error = errno;
    if (armed_) raw::change_mask(SIG_SETMASK, before_, nullptr);
    errno = error;
  }
  ScopedDeadlySignals(const ScopedDeadlySignals&) = delete;
  ScopedDeadlySignals& operator=(const ScopedDeadlySignals&) = delete;

 private:
  raw::SignalSet before_ = 0;
  bool armed_ = false;
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// Signals of the calling thread, blocked for a while.
#pragma once
#include <signal.h>

#include <cerrno>
#include <cstdint>

#include "guest/syscalls.h"

namespace kshim::shim {

constexpr raw::SignalSet signal_bit(int signal) noexcept {
  return raw::SignalSet{1} << static_cast<unsigned>(signal - 1);
}

/// All signals except those that faults of this thread raise: with these blocked, a fault ends the process.
constexpr raw::SignalSet kBlockable = ~(signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) |
                                        signal_bit(SIGFPE) | signal_bit(SIGTRAP) | signal_bit(SIGSYS));

/// Blocks all signals but faults. Nothing interrupts this thread meanwhile, so a handler cannot jump out of
/// the shim, cancel the thread, or stop it (collectors do) where it runs on a stack of the shim's.
class ScopedBlockSignals {
 public:
  /// `needed`: false where the caller knows that they are blocked.
  explicit ScopedBlockSignals(bool needed = true) noexcept {
    if (!needed) return;
    const int error = raw::t_error;
    armed_ = raw::change_mask(SIG_BLOCK, kBlockable, &before_) == 0;
    raw::t_error = error;  // a sandbox may have refused
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

/// This thread is inside the shim: a ReentryGuard lives.
extern constinit thread_local bool t_inside;
/// The host's own mask meanwhile.
extern constinit thread_local raw::SignalSet t_host_mask;

/// write(2) inside the shim. Signals are blocked there, and the one that a failed write has raised is taken
/// away again: SIGXFSZ of a size limit, SIGPIPE of a pipe without a reader. One that was pending before,
/// which only a host that blocks it can have, stays.
inline ssize_t write_without_signal(int fd, const void* from, std::size_t size) noexcept {
  constexpr raw::SignalSet kRaised = signal_bit(SIGXFSZ) | signal_bit(SIGPIPE);
  raw::SignalSet before = 0;
  if ((t_host_mask & kRaised) != 0) raw::pending_signals(before);
  const ssize_t written = raw::write_file(fd, from, size);
  const int error = raw::t_error;
  if (written >= 0 || (error != EFBIG && error != EPIPE)) return written;
  const raw::SignalSet raised = signal_bit(error == EFBIG ? SIGXFSZ : SIGPIPE);
  if ((before & raised) == 0) raw::discard_signal(raised);
  raw::t_error = error;
  return written;
}

}  // namespace kshim::shim

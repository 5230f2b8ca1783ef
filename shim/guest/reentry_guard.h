// SPDX-License-Identifier: Apache-2.0
// Marks this thread as inside the shim, with all signals blocked, so that no handler of the host runs there
// but those of faults; or as asking the driver, with the host's signals.
#pragma once
#include "guest/errno_keeper.h"
#include "guest/signals.h"

namespace kshim::shim {

/// This thread asks the driver: a ScopedQuestion lives. A host that leaves one by longjmp leaves it set: from
/// then on the driver is not asked in this thread.
extern constinit thread_local bool t_asking;

/// Around calls of the driver, or of a compiler's library, by the shim. The driver may wait there for a lock
/// whose owner a collector has stopped by a signal, so this thread must be open to that signal, too, as it is
/// in the host's own calls. Neither the shim's lock nor a ReentryGuard may be held. Preserves errno.
/// Calls that fail meanwhile (of a signal handler, of a tool that the driver calls back) are recorded like
/// others, but the driver is not asked about them: a question is never part of another.
class ScopedQuestion {
 public:
  ScopedQuestion() noexcept : nested_(t_inside || t_asking) {
    if (!nested_) t_asking = true;
  }
  ~ScopedQuestion() {
    if (!nested_) t_asking = false;
  }
  ScopedQuestion(const ScopedQuestion&) = delete;
  ScopedQuestion& operator=(const ScopedQuestion&) = delete;
  /// False if the driver makes this call during one of the shim's own queries, or a handler that has
  /// interrupted the shim: do not query again.
  explicit operator bool() const noexcept { return !nested_; }

 private:
  const ErrnoKeeper keeper_;
  bool nested_;
};

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
  /// False where this thread was inside already: the handler of a fault calls CUDA.
  explicit operator bool() const noexcept { return entered_; }

 private:
  const ScopedBlockSignals held_;
  bool entered_;
};

}  // namespace kshim::shim

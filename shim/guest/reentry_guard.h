// SPDX-License-Identifier: Apache-2.0
// Marks this thread as inside the shim, with all signals blocked, so that no handler of the host runs there
// but those of faults; or as asking the driver, with the host's signals.
#pragma once
#include <cstddef>
#include <cstdint>

#include "guest/errno_keeper.h"
#include "guest/safe_memory.h"
#include "guest/signals.h"

namespace kshim::shim {

/// Where the ScopedQuestion of this thread is; 0: there is none. A host that leaves a question by longjmp, or
/// goes on with it in another thread, leaves the number behind.
extern constinit thread_local std::uintptr_t t_question;

/// Around calls of the driver, or of a compiler's library, by the shim. The driver may wait there for a lock
/// whose owner a collector has stopped by a signal, so this thread must be open to that signal, too, as it is
/// in the host's own calls. Neither the shim's lock nor a ReentryGuard may be held. Preserves errno.
/// Calls that fail meanwhile (of a signal handler, of a tool that the driver calls back) are recorded like
/// others, but the driver is not asked about them: a question is never part of another.
class ScopedQuestion {
 public:
  ScopedQuestion() noexcept : nested_(t_inside || is_nested()) {
    if (nested_) return;
    mark_ = kMark;
    t_question = reinterpret_cast<std::uintptr_t>(this);
  }
  ~ScopedQuestion() {
    if (nested_) return;
    t_question = 0;
    mark_ = 0;
  }
  ScopedQuestion(const ScopedQuestion&) = delete;
  ScopedQuestion& operator=(const ScopedQuestion&) = delete;
  /// False if the driver makes this call during one of the shim's own queries, or a handler that has
  /// interrupted the shim: do not query again.
  explicit operator bool() const noexcept { return !nested_; }

 private:
  static constexpr std::uint64_t kMark = 0x6b7368696d3f0a51;
  /// Whether the question at t_question is still asked. Its place may be above this one only where a signal
  /// handler has a stack of its own: else the frame of that question has been left.
  bool is_nested() const noexcept {
    constexpr std::uintptr_t kOtherStack = std::uintptr_t{64} << 10U;
    if (t_question == 0) return false;
    const auto here = reinterpret_cast<std::uintptr_t>(this);
    std::uint64_t mark = 0;
    return (here < t_question || here - t_question > kOtherStack) &&
           read_memory(t_question + offsetof(ScopedQuestion, mark_), &mark, sizeof mark) && mark == kMark;
  }
  const ErrnoKeeper keeper_;
  volatile std::uint64_t mark_ = 0;  ///< volatile: read through t_question alone
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

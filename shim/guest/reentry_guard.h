// SPDX-License-Identifier: Apache-2.0
// Marks this thread as inside the shim: with all signals blocked, so that no handler of the host runs there,
// or as asking the driver, with the host's signals. What the driver calls meanwhile is not recorded.
#pragma once
#include <cstdint>

#include "guest/errno_keeper.h"
#include "guest/signals.h"

namespace kshim::shim {

extern constinit thread_local bool t_inside;
/// The frame of the question that this thread asks; 0: none. A host that leaves the question by longjmp
/// leaves the number behind, so it counts for the frames below it alone.
extern constinit thread_local std::uintptr_t t_question;

/// Around calls of the driver, or of a compiler's library, by the shim. The driver may wait there for a lock
/// whose owner a collector has stopped by a signal, so this thread must be open to that signal, too, as it is
/// in the host's own calls. Neither the shim's lock nor a ReentryGuard may be held. Preserves errno.
class ScopedQuestion {
 public:
  [[gnu::always_inline]] ScopedQuestion() noexcept : nested_(is_asked()) {
    if (!nested_) t_question = frame();
  }
  ~ScopedQuestion() {
    if (!nested_) t_question = 0;
  }
  ScopedQuestion(const ScopedQuestion&) = delete;
  ScopedQuestion& operator=(const ScopedQuestion&) = delete;
  /// False where the call comes from a question: ask nothing.
  explicit operator bool() const noexcept { return !nested_; }

  /// Whether the caller's frame is part of a question.
  [[gnu::always_inline]] static bool is_asked() noexcept { return frame() < t_question; }

 private:
  [[gnu::always_inline]] static std::uintptr_t frame() noexcept {
    return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  }
  const ErrnoKeeper keeper_;
  bool nested_;
};

class ReentryGuard {
 public:
  // A flag that is set while signals are not blocked is stale: the host left a fault's handler by siglongjmp,
  // which restored the signal mask.
  ReentryGuard() noexcept : entered_((!t_inside || !held_.were_blocked()) && !ScopedQuestion::is_asked()) {
    if (!entered_) return;
    t_inside = true;
    t_host_mask = held_.before();
  }
  ~ReentryGuard() {
    if (entered_) t_inside = false;
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
  /// False where this thread was inside already, or asks.
  explicit operator bool() const noexcept { return entered_; }

 private:
  const ScopedBlockSignals held_;
  bool entered_;
};

}  // namespace kshim::shim

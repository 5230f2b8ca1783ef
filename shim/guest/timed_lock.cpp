// SPDX-License-Identifier: Apache-2.0
#include "guest/timed_lock.h"

#include <time.h>

#include "guest/clock.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

/// 0 where the call is refused: programs do not notice, they read the clock without it (vDSO).
std::uint64_t true_nanoseconds() noexcept {
  timespec now{};
  if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Patience::Patience() noexcept : start_(true_nanoseconds()) {}

bool Patience::wait() noexcept {
  constexpr std::uint64_t kLongest = 200'000'000;  // nanoseconds; a record takes about one microsecond
  constexpr std::uint32_t kMostTurns = 100'000;    // 0.03 s and more: a turn is a system call
  raw::yield();
  const std::uint64_t now = start_ == 0 ? 0 : true_nanoseconds();
  if (now != 0) return now - start_ < kLongest;
  // With others at work a turn may be a whole slice of time: libc's clock as well, which may stand still.
  if (turns_ == 0) blind_start_ = now_nanoseconds();
  return ++turns_ < kMostTurns && now_nanoseconds() - blind_start_ < kLongest;
}

bool PatientLock::attempt(std::uint64_t mark) noexcept {
  std::uint64_t holder = holder_.load(std::memory_order_relaxed);
  return holder >> 32U != mark >> 32U &&
         holder_.compare_exchange_strong(holder, mark, std::memory_order_acquire);
}

bool PatientLock::acquire() noexcept {
  constexpr int kSpins = 1000;
  const std::uint64_t mark = thread_mark();
  if (holder_.load(std::memory_order_relaxed) == mark) return false;
  for (int i = 0; i < kSpins; ++i)
    if (attempt(mark)) return true;
  Patience patience;
  while (!stuck_.load(std::memory_order_relaxed) && patience.wait())
    if (attempt(mark)) return true;
  stuck_.store(true, std::memory_order_relaxed);
  return false;
}

}  // namespace kshim::shim

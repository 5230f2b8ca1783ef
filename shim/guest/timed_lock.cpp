// SPDX-License-Identifier: Apache-2.0
#include "guest/timed_lock.h"

#include <algorithm>

#include "guest/clock.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

bool TimedLock::try_acquire(bool& inherited) noexcept {
  const std::uint64_t self = thread_token();
  std::uint64_t owner = owner_.load(std::memory_order_relaxed);
  if (owner != 0 && are_of_one_process(owner, self)) return false;
  inherited = owner != 0;
  return owner_.compare_exchange_strong(owner, self, std::memory_order_acquire);
}

bool TimedLock::acquire(bool& inherited) noexcept {
  constexpr int kSpins = 100;
  if (owner_.load(std::memory_order_relaxed) == thread_token()) return false;
  for (int i = 0; i < kSpins; ++i)
    if (try_acquire(inherited)) return true;
  waiting_.fetch_add(1);
  const bool acquired = wait_and_acquire(inherited);
  waiting_.fetch_sub(1);
  return acquired;
}

// The word is read before the attempt, and the owner changes it before it checks for waiting threads, so no
// release is missed. Each sleep has a limit, because the thread that was woken may have given up.
bool TimedLock::wait_and_acquire(bool& inherited) noexcept {
  constexpr std::uint64_t kLimit = 2'000'000'000;  // nanoseconds
  constexpr std::uint64_t kTurn = 10'000'000;
  constexpr std::uint32_t kMaxTurns = 200'000;  // in case the clock does not advance
  std::uint64_t last = now_nanoseconds();
  std::uint64_t waited = 0;  // since the last release
  std::uint32_t seen = releases_.load();
  for (std::uint32_t turns = 0; turns < kMaxTurns && waited < kLimit; ++turns) {
    const std::uint32_t releases = releases_.load();
    if (try_acquire(inherited)) return true;
    if (abandoned_.load(std::memory_order_relaxed)) return false;
    if (releases != seen) waited = 0;
    seen = releases;
    raw::sleep_while(releases_, releases, static_cast<long>(kTurn));
    const std::uint64_t now = now_nanoseconds();
    waited += std::min(now - last, 2 * kTurn);
    last = now;
  }
  abandoned_.store(true, std::memory_order_relaxed);
  return false;
}

void TimedLock::release() noexcept {
  abandoned_.store(false, std::memory_order_relaxed);
  owner_.store(0, std::memory_order_release);
  releases_.fetch_add(1);
  if (waiting_.load() == 0) return;
  raw::wake_one(releases_);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "guest/timed_lock.h"

#include <algorithm>

#include "guest/clock.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

Patience::Patience() noexcept : last_(now_nanoseconds()) {}

// At first the owner mostly needs a microsecond more. Later it may have a lower priority than this thread,
// and runs only when this thread sleeps.
bool Patience::wait() noexcept {
  constexpr std::uint64_t kLongest = 2'000'000'000;  // nanoseconds
  constexpr std::uint64_t kTurn = 4'000'000;
  constexpr std::uint32_t kYields = 50;
  constexpr std::uint32_t kMostTurns = 50'000;  // should the clock stand still
  constexpr long kSleep = 100'000;
  if (turns_ < kYields)
    raw::yield();
  else
    raw::sleep_for(kSleep);
  const std::uint64_t now = now_nanoseconds();
  waited_ += std::min(now - last_, kTurn);
  last_ = now;
  return ++turns_ < kMostTurns && waited_ < kLongest;
}

bool PatientLock::try_acquire(bool& inherited) noexcept {
  const std::uint64_t self = thread_mark();
  std::uint64_t owner = owner_.load(std::memory_order_relaxed);
  if (owner >> 32U == self >> 32U) return false;
  inherited = owner != 0;
  return owner_.compare_exchange_strong(owner, self, std::memory_order_acquire);
}

bool PatientLock::acquire(bool& inherited) noexcept {
  constexpr int kSpins = 100;
  if (owner_.load(std::memory_order_relaxed) == thread_mark()) return false;
  for (int i = 0; i < kSpins; ++i)
    if (try_acquire(inherited)) return true;
  Patience patience;
  while (!abandoned_.load(std::memory_order_relaxed) && patience.wait())
    if (try_acquire(inherited)) return true;
  abandoned_.store(true, std::memory_order_relaxed);
  return false;
}

}  // namespace kshim::shim

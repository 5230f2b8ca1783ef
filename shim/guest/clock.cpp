// SPDX-License-Identifier: Apache-2.0
#include "guest/clock.h"

#include "guest/syscalls.h"

namespace kshim::shim {

void read_clock(clockid_t clock, timespec& out) noexcept {
  const ClockFn libcs = g_libcs_clock.load(std::memory_order_relaxed);
  if (libcs != nullptr && libcs(clock, &out) == 0) return;
  if (raw::call(SYS_clock_gettime, clock, &out) != 0) out = {};
}

std::uint64_t now_nanoseconds() noexcept {
  timespec now{};
  read_clock(CLOCK_MONOTONIC, now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace kshim::shim

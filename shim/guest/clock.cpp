// SPDX-License-Identifier: Apache-2.0
#include "guest/clock.h"

#include <time.h>

namespace kshim::shim {

std::uint64_t now_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// The kernel's clocks, by libc's own function, which asks the vDSO. A library that replaces that function
// (libfaketime) is not asked.
#pragma once
#include <time.h>

#include <atomic>
#include <cstdint>

namespace kshim::shim {

/// libc's clock_gettime, which the constructor finds (lifetime.cpp). nullptr: the kernel is asked.
using ClockFn = int (*)(clockid_t, timespec*);
inline constinit std::atomic<ClockFn> g_libcs_clock{nullptr};

void read_clock(clockid_t clock, timespec& out) noexcept;
std::uint64_t now_nanoseconds() noexcept;  ///< CLOCK_MONOTONIC

/// Both by now_nanoseconds().
struct Period {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Limits repeated work to a fixed fraction of the run time (1/17). A zeroed object is due at once.
class RateLimit {
 public:
  bool is_due() const noexcept { return now_nanoseconds() >= next_; }
  template <class Work>
  void run(const Work& work) noexcept {
    constexpr std::uint64_t kPart = 16;
    const std::uint64_t begin = now_nanoseconds();
    work();
    const std::uint64_t end = now_nanoseconds();
    next_ = end + kPart * (end - begin);
  }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// The kernel's clocks, without libc's function: the vDSO's, which costs no system call. A library that
// replaces clock_gettime (libfaketime) is not asked.
#pragma once
#include <time.h>

#include <cstdint>

namespace kshim::shim {

void read_clock(clockid_t clock, timespec& out) noexcept;
std::uint64_t now_nanoseconds() noexcept;  ///< CLOCK_MONOTONIC

/// Keeps work that is repeated to a small part of the time, however long it takes. Zeroed memory is one whose
/// work is due.
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

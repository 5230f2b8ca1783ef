// SPDX-License-Identifier: Apache-2.0
// The kernel's clocks, without libc's function: the vDSO's, which costs no system call. A library that
// replaces clock_gettime (libfaketime) is not asked.
#pragma once
#include <time.h>

#include <cstdint>

namespace kshim::shim {

void read_clock(clockid_t clock, timespec& out) noexcept;
std::uint64_t now_nanoseconds() noexcept;  ///< CLOCK_MONOTONIC

}  // namespace kshim::shim

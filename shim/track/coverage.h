// SPDX-License-Identifier: Apache-2.0
// KSHIM_COVERAGE=1: every distinct kernel that was launched, and how often. Off, nothing of this is on the
// launch path: the wrappers' next function is the driver's. On, it is a function of
// exports/coverage_calls.cpp that counts what succeeded.
#pragma once
#include <cstdint>

#include "track/modules.h"

namespace kshim::shim {

/// A launch of the CUfunction or CUkernel succeeded. Lock-free. False where the handle is not known yet: then
/// register_kernel() counts it.
bool count_launch(std::uintptr_t handle) noexcept;
/// A launch that does not tell its kernel: the report says at its end that something is missing. Lock-free.
void count_unknown_launch() noexcept;

// Under the shim's lock:

/// The first launch of this handle in this report: writes the kernel's record.
void register_kernel(std::uintptr_t handle, Report& report, const Modules& modules,
                     ObjectRecords& objects) noexcept;
/// The handle stands for something else from now on.
void forget_launches(std::uintptr_t handle) noexcept;
/// Writes how often each kernel was launched, at the report's end.
void write_launch_counts(Report& report) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// KSHIM_COVERAGE=1: records every distinct kernel that was launched, and how often. By default none of this
// is on the launch path: the wrappers call the driver. With the option they call a function of
// exports/coverage_calls.cpp, which counts successful launches.
#pragma once
#include <cstdint>

#include "guest/locked.h"
#include "track/handle_names.h"
#include "track/modules.h"

namespace kshim::shim {

/// A launch of the CUfunction or CUkernel succeeded. Lock-free. False if the handle is not known yet: call
/// register_kernel(), which counts the launch.
bool count_launch(std::uintptr_t handle) noexcept;
/// A launch without a known kernel: the report's end says that something is missing. Lock-free.
void count_unknown_launch() noexcept;

/// The first launch of this handle in this report: writes the kernel's record.
void register_kernel(const Locked& locked, std::uintptr_t handle, Report& report, const Modules& modules,
                     HandleNames& handles, ObjectRecords& objects) noexcept;
/// The handle refers to something else from now on.
void forget_launches(const Locked& locked, std::uintptr_t handle) noexcept;
/// Writes how often each kernel was launched, at the report's end.
void write_launch_counts(const Locked& locked, Report& report) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// KSHIM_COVERAGE=1: every distinct kernel that was launched, and how often. Off, nothing of this is on the
// launch path: the wrappers' next function is the driver's. On, it is a function of coverage_calls.cpp that
// counts what succeeded.
#pragma once
#include <cstdint>

#include "cuda/next_symbol.h"

namespace kshim::shim {

/// A launch of the CUfunction or CUkernel succeeded. Lock-free but for the first launch of a handle, which
/// writes a record.
void count_launch(std::uintptr_t handle) noexcept;
/// A launch that does not tell its kernel: the report says at its end that something is missing.
void count_unknown_launch() noexcept;
/// The handle stands for something else from now on: handles.h.
void forget_launches(std::uintptr_t handle) noexcept;
/// Writes how often each kernel was launched, at the report's end. The thread is Busy.
void write_launch_counts() noexcept;

/// Where the driver's wrappers go on to when launches are counted: for an export or for what was handed out
/// by address. `real` is kept and called. `real` itself for a hook that launches nothing, and where nothing
/// is counted.
AnyFunction counting(Hook hook, bool exported, AnyFunction real) noexcept;

}  // namespace kshim::shim

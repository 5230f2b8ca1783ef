// SPDX-License-Identifier: Apache-2.0
// The next definitions of libc's functions that the shim exports (lifetime.cpp finds them at the start).
#pragma once
#include <atomic>
#include <string_view>

namespace kshim::shim {

using CloseFn = int (*)(void*);
extern std::atomic<CloseFn> g_next_dlclose;

/// For a call before the shim's constructor ran, or where the file that has it was mapped later. nullptr
/// where there is none.
void* find_next(std::string_view name) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// LLVM's libunwind asks libc for memory, prints, aborts on tables that it does not understand and waits for a
// lock. In somebody else's process it gets stand-ins for all of that (walk.cpp; the linker's --wrap leads
// there): a walk that cannot go on is given up, and the host never hears of it.
#pragma once

namespace kshim::shim {

/// Calls walk(context), which asks libunwind and holds nothing. False where it was given up.
bool guarded_walk(void (*walk)(void*), void* context) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// LLVM's libunwind allocates memory, prints, aborts on tables that it does not understand, and waits for a
// lock. walk.cpp replaces the libc functions that it calls (the linker's --wrap option): a walk that fails is
// abandoned, and the host is not affected.
#pragma once

namespace kshim::shim {

/// Calls walk(context), which asks libunwind and holds nothing. False where it was given up.
bool guarded_walk(void (*walk)(void*), void* context) noexcept;

}  // namespace kshim::shim

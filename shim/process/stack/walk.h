// SPDX-License-Identifier: Apache-2.0
// LLVM's libunwind allocates memory, prints, aborts on tables that it does not understand, and waits for a
// lock. walk.cpp replaces the libc functions that it calls (the linker's --wrap option): a walk that fails is
// abandoned, and the host is not affected.
#pragma once
#include <cstdint>

namespace kshim::shim {

/// Calls walk(context), which asks libunwind and holds nothing. False where it was given up.
bool guarded_walk(void (*walk)(void*), void* context) noexcept;

/// A frame of the calling thread's stack.
struct Frame {
  std::uintptr_t address = 0;  ///< where it goes on
  std::uintptr_t stack = 0;    ///< its end
  bool is_handlers = false;    ///< the kernel's, below a signal handler
};
/// Calls visit(context, frame) for each frame, innermost first and the shim's own among them, until it
/// answers false or a frame cannot be right.
void walk_stack(bool (*visit)(void* context, const Frame& frame), void* context) noexcept;
template <class Visit>
void walk_stack(const Visit& visit) noexcept {
  walk_stack([](void* of, const Frame& frame) { return (*static_cast<const Visit*>(of))(frame); },
             const_cast<Visit*>(&visit));
}

}  // namespace kshim::shim

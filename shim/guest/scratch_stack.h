// SPDX-License-Identifier: Apache-2.0
// A host's thread may have as little stack as PTHREAD_STACK_MIN (16 KiB), a signal handler half of that, and
// a recursion may have used up what there was. What the shim does when something is loaded or fails needs up
// to 45 KiB: it is done on a stack of the shim's own, but for the main thread's where that has them left. Of
// other threads nobody can tell what lies below their stack.
#pragma once
#include <cstdint>

namespace kshim::shim {

/// Whether a frame lies on one of the shim's own stacks.
bool is_on_own_stack(std::uintptr_t frame) noexcept;

/// Calls work(context). False where neither the thread's stack has room nor one of ours is free: then nothing
/// was called.
[[nodiscard]] bool run_with_room(void (*work)(const void*), const void* context) noexcept;

template <class Work>
[[nodiscard]] bool with_room(const Work& work) noexcept {
  return run_with_room([](const void* context) { (*static_cast<const Work*>(context))(); }, &work);
}

}  // namespace kshim::shim

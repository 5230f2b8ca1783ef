// SPDX-License-Identifier: Apache-2.0
// The stacks that the shim works on. A host's thread may have as little as PTHREAD_STACK_MIN (16 KiB), a
// signal handler or a coroutine less, and the readable memory below its frame may hold the host's data. All
// signals but faults are blocked while a thread is on one, so no collector ever sees a thread there.
#pragma once
#include <cstddef>
#include <cstdint>

#include "guest/function_ref.h"

namespace kshim::shim {

namespace stacks {
void protect_end(std::byte* memory) noexcept;
void call(FunctionRef<void()> work, std::byte* memory, std::size_t size) noexcept;
}  // namespace stacks

/// The beginning of memory that the shim has mapped, where untouched pages cost nothing. One thread at a
/// time.
template <std::size_t kSize>
class Stack {
 public:
  /// Call it once: takes access away from the lowest page, so that an overflow faults.
  void prepare() noexcept { stacks::protect_end(bytes_); }
  void call(FunctionRef<void()> work) noexcept { stacks::call(work, bytes_, kSize); }

 private:
  std::byte bytes_[kSize];
};

/// The one that records are written on.
using ScratchStack = Stack<std::size_t{512} << 10U>;
/// Whether a frame of this thread's lies on a stack of the shim's.
bool is_on_own_stack(std::uintptr_t frame) noexcept;

/// Calls work() on a stack that is mapped for this call, with all signals blocked; on the caller's where that
/// is one of the shim's, or where there is no memory. For work that several threads may do at a time.
void on_new_stack(FunctionRef<void()> work) noexcept;

}  // namespace kshim::shim

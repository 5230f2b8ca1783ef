// SPDX-License-Identifier: Apache-2.0
// The stack that the shim works on. A host's thread may have as little as PTHREAD_STACK_MIN (16 KiB), a
// signal handler or a coroutine less, and what can be read below its frame may be somebody's data. All
// signals are blocked while a thread is on it (reentry_guard.h), so no handler and no collector ever sees a
// thread there.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kshim::shim {

/// Part of memory that the shim has mapped, where untouched pages cost nothing. One thread at a time.
class ScratchStack {
 public:
  /// Call it once: takes access away from the lowest page, so that an overflow faults.
  void prepare() noexcept;
  void call(void (*work)(const void*), const void* context) noexcept;

 private:
  static constexpr std::size_t kSize = std::size_t{512} << 10U;
  std::byte bytes_[kSize];
};

/// Whether a frame lies on it.
bool is_on_scratch_stack(std::uintptr_t frame) noexcept;

}  // namespace kshim::shim

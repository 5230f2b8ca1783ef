// SPDX-License-Identifier: Apache-2.0
// Which process and which thread this is, across fork.
#pragma once
#include <atomic>
#include <cstdint>

namespace kshim::shim {

std::uint32_t thread_id() noexcept;
inline constinit std::atomic<std::uint32_t> g_generation{1};
/// Differs between a process and its child of fork (libc's). A child of vfork, which shares its parent's
/// memory, has its parent's. Never 0.
inline std::uint32_t process_generation() noexcept { return g_generation.load(std::memory_order_relaxed); }
/// Calls function() in each child of fork.
void call_in_child(void (*function)()) noexcept;

/// Identifies process and thread: unique among the live threads of a process, not 0. No system call.
std::uint64_t thread_token() noexcept;
/// Whether two threads with these tokens belong to one process. In a child of fork, a token may belong to a
/// thread of the parent.
constexpr unsigned kBitsOfThread = 42;  ///< an address of 48 bits in steps of 64; process ids have 22
inline bool are_of_one_process(std::uint64_t a, std::uint64_t b) noexcept {
  return a >> kBitsOfThread == b >> kBitsOfThread;
}

}  // namespace kshim::shim

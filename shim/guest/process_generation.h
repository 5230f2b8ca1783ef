// SPDX-License-Identifier: Apache-2.0
// Which process and which thread this is, across fork.
#pragma once
#include <cstdint>

namespace kshim::shim {

std::uint32_t thread_id() noexcept;
/// Which copy of the memory this is: differs between parent and child, even if both have the same process id
/// (in different pid namespaces). A child of vfork, which shares its parent's memory, has its parent's.
std::uint32_t process_generation() noexcept;

/// Identifies process and thread: unique among the live threads of a process, not 0. No system call.
std::uint64_t thread_token() noexcept;
/// Whether two threads with these tokens belong to one process. In a child of fork, a token may belong to a
/// thread of the parent.
constexpr unsigned kBitsOfThread = 42;  ///< an address of 48 bits in steps of 64; process ids have 22
inline bool are_of_one_process(std::uint64_t a, std::uint64_t b) noexcept {
  return a >> kBitsOfThread == b >> kBitsOfThread;
}

}  // namespace kshim::shim

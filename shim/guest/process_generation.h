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
/// Whether this process created the token. In a child of fork, a token may belong to a thread of the parent.
inline bool is_of_this_process(std::uint64_t mark) noexcept { return mark >> 32U == process_generation(); }

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// Which process and which thread this is, across fork.
#pragma once
#include <cstdint>

namespace kshim::shim {

std::uint32_t thread_id() noexcept;
/// The process id. Makes one system call in all; correct in a child of fork. In a child of vfork, which
/// shares memory with its parent, it is the parent's: use getpid() where that matters.
std::uint32_t process_id() noexcept;
/// Differs between parent and child, even if both have the same process id (in different pid namespaces).
std::uint32_t process_generation() noexcept;

/// Identifies process and thread: unique among the live threads of a process, not 0. No system call.
std::uint64_t thread_token() noexcept;
/// Whether this process created the token. In a child of fork, a token may belong to a thread of the parent.
inline bool is_of_this_process(std::uint64_t mark) noexcept { return mark >> 32U == process_generation(); }

}  // namespace kshim::shim

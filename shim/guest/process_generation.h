// SPDX-License-Identifier: Apache-2.0
// Which process and which thread this is, across fork.
#pragma once
#include <cstdint>

namespace kshim::shim {

std::uint32_t thread_id() noexcept;
/// Without a system call after the first; right in a fork's child. A vfork's child, which shares our memory
/// until it execs, passes for its parent: where that matters, ask getpid().
std::uint32_t process_id() noexcept;
/// Tells processes apart, also a child from a parent with the same process id, in another pid namespace.
std::uint32_t process_generation() noexcept;

/// Process and thread; no two of a process that live at the same time have the same. Not 0, no system call.
std::uint64_t thread_token() noexcept;
/// Whether a mark was set by this process: what a fork's child finds may be of a thread that it does not
/// have.
inline bool is_of_this_process(std::uint64_t mark) noexcept { return mark >> 32U == process_generation(); }

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// How much memory the command may use (--max-memory). The kernel keeps the limit, for our own code and for
// every library: what does not fit throws std::bad_alloc, or is a library's error. Pages of mapped files are
// not counted: the system takes them back whenever it wants.
#pragma once
#include <cstddef>

#include "analyzer/core/prelude.h"

namespace kshim::core {

constexpr std::uint64_t kMinMemory = 64'000'000;

/// The smaller of 1 GB and half of what is free, in the machine and in the container.
std::uint64_t default_memory();

/// Once, before work begins. A sanitizer's memory is not limited.
void limit_memory(std::uint64_t bytes);
/// Before so many threads are made: their stacks do not count.
void allow_threads(std::size_t count);
std::uint64_t memory_limit() noexcept;  ///< what limit_memory() was told, else 1 GB
/// For a child, between fork and exec: the limit is ours, not that of programs that we start.
void lift_memory_limit() noexcept;
/// "needs more than 512 MB of memory (--max-memory)".
std::string no_memory_clause();

}  // namespace kshim::core

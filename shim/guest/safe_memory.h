// SPDX-License-Identifier: Apache-2.0
// Reads memory that may be unmapped: a bad address is an error, not a fault.
#pragma once
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// process_vm_readv on this process: a bad address is an error, not SIGSEGV. `size`: of all parts.
enum class KernelRead : std::uint8_t { done, unreadable, refused };
KernelRead read_by_kernel(const iovec* local, const iovec* remote, std::size_t count,
                          std::size_t size) noexcept;
/// Copies `size` bytes; false if any of them cannot be read.
bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept;
/// How many of `size` bytes from `address` can be read, to the page.
std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept;

/// Call it at start-up under Valgrind, which reports an error of the program for each question about an
/// unmapped page.
void never_ask_for_pages() noexcept;

/// The zero-terminated text at `from`, not copied; empty unless all of it can be read.
std::string_view readable_text(const char* from) noexcept;

}  // namespace kshim::shim

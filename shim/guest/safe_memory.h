// SPDX-License-Identifier: Apache-2.0
// Reads memory that may not be there: a bad address costs an error, not the process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// Reads foreign memory; false where it cannot be read.
bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept;
/// How many of `size` bytes from `address` can be read, to the page.
std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept;

/// For the start of the process under Valgrind, which counts an error of the program's for each page that is
/// asked for and not there.
void never_ask_for_pages() noexcept;

/// The zero-terminated text at `from`, where it is; empty unless all of it can be read.
std::string_view readable_text(const char* from) noexcept;

}  // namespace kshim::shim

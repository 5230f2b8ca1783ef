// SPDX-License-Identifier: Apache-2.0
// Which processes are watched: KSHIM_PROGRAMS and KSHIM_SAMPLE.
#pragma once
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// Of the patterns, separated by `;`, the last one that matches wins; `!` before one leaves the program
/// alone. A pattern without `/` is held against the base name of the executable, else against its path; `*`
/// stands for any text, `?` for one character. Where none matches, a program is watched if there are only `!`
/// patterns.
bool is_program_watched(std::string_view patterns, std::string_view executable) noexcept;

/// Whether this process, as one of `sample`, is recorded although nothing fails in it.
bool is_chosen(std::uint64_t sample) noexcept;

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

namespace kshim::shim {

/// The path of the program's file, without a NUL; returns its length, 0 if it is not known. /proc/self/exe,
/// except where the dynamic linker was started as a command (`ld.so ./program`): that link is its own then.
std::size_t read_program_path(char* to, std::size_t room) noexcept;

}  // namespace kshim::shim

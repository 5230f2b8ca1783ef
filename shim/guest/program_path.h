// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "guest/syscalls.h"

namespace kshim::shim {

/// The path of the program's file, without a NUL; returns its length, 0 if it is not known. Where the dynamic
/// linker was started as a command (`ld.so ./program`), its own.
inline std::size_t read_program_path(char* to, std::size_t room) noexcept {
  const ssize_t size = raw::read_link("/proc/self/exe", to, room);
  return size <= 0 ? 0 : static_cast<std::size_t>(size);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// The auxiliary vector that the kernel passes to a program, by libc's reserved name: a program may define a
// function or a variable `getauxval`.
#pragma once
#include <elf.h>

#include "guest/syscalls.h"

extern "C" [[gnu::weak]] unsigned long __getauxval(unsigned long type);  // musl has none

namespace kshim::shim {

/// 0 if the kernel passed no such value.
inline unsigned long auxiliary_value(unsigned long type) noexcept {
  return __getauxval == nullptr ? 0 : __getauxval(type);
}
/// Whether the program has rights that its caller lacks.
inline bool has_raised_rights() noexcept {
  if (__getauxval != nullptr) return __getauxval(AT_SECURE) != 0;
  return raw::call(SYS_getuid) != raw::call(SYS_geteuid) || raw::call(SYS_getgid) != raw::call(SYS_getegid);
}

}  // namespace kshim::shim

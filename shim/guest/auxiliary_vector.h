// SPDX-License-Identifier: Apache-2.0
// The auxiliary vector that the kernel passes to a program, without libc's getauxval(): a program may define
// a function or a variable of that name.
#pragma once

namespace kshim::shim {

/// 0 if the kernel passed no such value, or if neither /proc nor prctl(2) has it.
unsigned long auxiliary_value(unsigned long type) noexcept;
/// Whether the program has rights that its caller lacks (AT_SECURE).
bool has_raised_rights() noexcept;

}  // namespace kshim::shim

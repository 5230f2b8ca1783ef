// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker tells debuggers of this process.
#pragma once
#include <link.h>

#include <cstddef>

#include "guest/signals.h"

namespace kshim::shim {

/// dl_iterate_phdr, which holds ld.so's lock meanwhile. Not for callbacks that run the host's code.
inline int each_of_linker(int (*visit)(dl_phdr_info*, std::size_t, void*), void* context) noexcept {
  const AllSignalsHeld held;
  return dl_iterate_phdr(visit, context);
}

/// ld.so's list of what is mapped, namespace by namespace; nullptr where the program has none. Without
/// dl_iterate_phdr, which sanitizers stand in for.
const r_debug* linker_debug() noexcept;
/// The first of it in our namespace, which is the program's; nullptr where there is none.
const link_map* first_map() noexcept;
/// Valgrind's own libraries came with the program.
bool began_under_valgrind() noexcept;
/// The object that is mapped at this address was there when the process started: what it defines is in the
/// global scope, which is searched first for everybody, and by RTLD_DEFAULT it sees that scope alone. Of
/// others nobody but libc knows which libraries they were opened with.
bool came_with_the_program(ElfW(Addr) base) noexcept;

}  // namespace kshim::shim

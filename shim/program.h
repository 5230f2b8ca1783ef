// SPDX-License-Identifier: Apache-2.0
// What the dynamic linker tells debuggers of this process.
#pragma once
#include <link.h>

namespace kshim::shim {

/// ld.so's list of what is mapped, namespace by namespace; nullptr where the program has none. Without
/// dl_iterate_phdr, which sanitizers stand in for.
const r_debug* linker_debug() noexcept;

}  // namespace kshim::shim

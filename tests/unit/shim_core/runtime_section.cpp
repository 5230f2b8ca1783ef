// SPDX-License-Identifier: Apache-2.0
// The section of the runtime's wrappers, which are not part of the tests, and a call that happens inside it.
#include "runtime_section.h"

namespace kshim::shim::test {

[[gnu::noinline, gnu::section("kshim_runtime")]] bool asked_inside(bool (*ask)()) noexcept {
  const bool inside = ask();
  asm volatile("" ::: "memory");  // not a tail call: the frame has to be there
  return inside;
}

}  // namespace kshim::shim::test

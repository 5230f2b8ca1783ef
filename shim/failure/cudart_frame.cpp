// SPDX-License-Identifier: Apache-2.0
#include "failure/cudart_frame.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <cstdint>

#include "process/stack/walk.h"

// The linker's marks of the section that all wrappers of the runtime are in (runtime_exports.cpp).
extern "C" [[gnu::visibility("hidden")]] const char __start_kshim_runtime[];
extern "C" [[gnu::visibility("hidden")]] const char __stop_kshim_runtime[];

namespace kshim::shim {

namespace {

void look(void* found) noexcept {
  // A runtime call reaches the driver within a few frames; the program's own frames are not examined.
  constexpr int kMaxFrames = 48;
  const auto low = reinterpret_cast<std::uintptr_t>(__start_kshim_runtime);
  const auto high = reinterpret_cast<std::uintptr_t>(__stop_kshim_runtime);
  unw_context_t context;
  unw_cursor_t cursor;
  if (unw_getcontext(&context) != 0 || unw_init_local(&cursor, &context) != 0) return;
  for (int i = 0; i < kMaxFrames && unw_step(&cursor) > 0; ++i) {
    unw_word_t address = 0;
    if (unw_get_reg(&cursor, UNW_REG_IP, &address) != 0) return;
    if (address < low || address >= high) continue;
    *static_cast<bool*>(found) = true;
    return;
  }
}

}  // namespace

bool called_from_cudart() noexcept {
  bool found = false;
  guarded_walk(look, &found);
  return found;
}

}  // namespace kshim::shim

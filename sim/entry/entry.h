// SPDX-License-Identifier: Apache-2.0
// What an implementation file includes. Every driver function is declared here with the exact type <cuda.h>
// gives it, so a definition `CUresult entry::cuInit(unsigned flags)` that disagrees does not compile.
// Declarations are weak: a function without a definition is a null pointer, and the table returns 801 for it.
#pragma once
#include "base/driver_api.h"

namespace kshim::sim {

namespace entry {
#define KSHIM_SIM_ENTRY(symbol, name, introduced) [[gnu::weak]] decltype(::symbol) symbol;
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base) [[gnu::weak]] decltype(::symbol) symbol;
#include "entry_points.def"
#undef KSHIM_SIM_ENTRY
#undef KSHIM_SIM_ENTRY_PER_THREAD
}  // namespace entry

/// Row numbers, in the order of entry_points.def.
enum class Row : unsigned {
#define KSHIM_SIM_ENTRY(symbol, name, introduced) symbol,
#define KSHIM_SIM_ENTRY_PER_THREAD(symbol, name, introduced, base) symbol,
#include "entry_points.def"
#undef KSHIM_SIM_ENTRY
#undef KSHIM_SIM_ENTRY_PER_THREAD
  count
};
constexpr unsigned kRowCount = static_cast<unsigned>(Row::count);

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// CUDA runtimes before 12 load device code through a table of functions that the driver returns for a UUID.
// They check the table's address, so the shim cannot copy it: with KSHIM_PATCH_TABLE=1 it replaces the slots
// that load, in place, once, when such a runtime asks for the table. The table belongs to the driver, and all
// runtimes of the process share it: if anything in it is unexpected, it is left alone, one line says so under
// KSHIM_LOG=info, and the shim does not try again.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda/cuda_abi.h"
#include "cuda/real_functions.h"
#include "guest/locked.h"

namespace kshim::shim {

/// The rows of slots.def.
enum TableRow : std::size_t {
#define KSHIM_SLOT(name, reported, slot, first, second) row_##name,
#include "cuda/slots.def"
#undef KSHIM_SLOT
  kTableRows
};
/// The driver's functions. Each is written before its slot is, and never cleared: a thread may be about to
/// call it.
[[gnu::visibility("hidden")]] extern std::atomic<AnyFunction> g_table_real[kTableRows];

/// Whether the id is that of the table that these runtimes load through.
bool is_load_table(const abi::Uuid& id) noexcept;
/// cuGetExportTable has answered `caller` with that table. `wrappers`: what stands in the slots instead, by
/// row.
void watch_load_table(const Locked& locked, std::uintptr_t table, const void* caller,
                      const AnyFunction* wrappers) noexcept;
/// The identity of the file of a runtime before 12 that has asked for the table while it is not replaced: its
/// loads are not recorded. 0: there is none.
std::uint32_t unwatched_runtime() noexcept;
/// The file that holds `caller` has looked up cuLibraryLoadData: its runtime is 12 or newer and does not load
/// through the table.
void note_loads_libraries(const void* caller) noexcept;

}  // namespace kshim::shim

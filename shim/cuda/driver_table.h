// SPDX-License-Identifier: Apache-2.0
// The runtimes before 12 load device code through a table of functions that the driver hands out by UUID.
// They check the table's address, so it is never copied: the slots that load are replaced where they stand,
// once, and only when such a runtime asks. The table is the driver's and is shared by every runtime of the
// process: whatever does not look as expected is left as it was, said once under KSHIM_LOG=info, and never
// tried again.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cuda/cuda_abi.h"

namespace kshim::shim {

/// cuGetExportTable has answered `caller` with *table. errno is kept.
void note_export_table(const void* const* table, const abi::Uuid* id, const void* caller) noexcept;
/// A runtime before 12 has asked for the table, and KSHIM_PATCH_TABLE is not set: its loads are not recorded.
bool has_unwatched_table() noexcept;
/// The file that holds `caller` has asked for cuLibraryLoadData: its runtime is 12 or newer and loads by
/// that.
void note_loads_libraries(const void* caller) noexcept;

/// Puts the wrappers into the table. Empty when they are there, else why nothing was changed. Not
/// thread-safe: for note_export_table and the tests.
std::string_view watch_table(std::uintptr_t table) noexcept;

}  // namespace kshim::shim

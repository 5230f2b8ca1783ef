// SPDX-License-Identifier: Apache-2.0
// The tables of functions without names that the runtime and NVIDIA's libraries ask for by UUID
// (cuGetExportTable). The function of each slot is known from public work and from the behavior of callers:
// docs/internals/simulator.md, "Export tables".
#pragma once
#include "base/driver_api.h"

namespace kshim::sim {

/// Null for a table this driver does not have.
const void* find_export_table(const CUuuid& id) noexcept;
/// 1000 * major + 10 * minor.
int driver_version() noexcept;

}  // namespace kshim::sim

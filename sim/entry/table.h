// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: from name, version and flags to the exported stub.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/driver_api.h"

namespace kshim::sim {

struct ProcAddress {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
};

/// The newest variant of `name` introduced at or before `cuda_version` and present in a driver of
/// `driver_version`; with CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM its per-thread twin where there is
/// one.
ProcAddress find_proc(std::string_view name, int cuda_version, int driver_version,
                      std::uint64_t flags) noexcept;

}  // namespace kshim::sim

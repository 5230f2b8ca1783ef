// SPDX-License-Identifier: Apache-2.0
// Memory pools count what was allocated from them. Nothing is cached: freed memory is returned at once, so
// the reserved size equals the used size.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/driver_api.h"
#include "base/handles.h"

namespace kshim::sim {

struct Device;

struct MemPool : Handled<Kind::mem_pool> {
  MemPool(const Device& on, const CUmemPoolProps& made_with, bool is_default) noexcept;
  const Device& device;
  const CUmemPoolProps properties;
  const bool by_default;
  std::atomic<std::uint64_t> used{0}, used_high{0}, reserved_high{0};  ///< bytes
  std::atomic<std::uint64_t> release_threshold{0};                     ///< bytes; kept for queries
  std::atomic<int> reuse[3] = {1, 1, 1};  ///< CU_MEMPOOL_ATTR_REUSE_*, from 1: all on by default

  void add(std::size_t bytes) noexcept;
};

/// Where cuMemAllocAsync takes from (cuDeviceSetMemPool).
MemPool& current_pool(const Device& device) noexcept;
/// Called when memory that came from a pool ends.
void pool_discharge(void* pool, std::size_t bytes) noexcept;

}  // namespace kshim::sim

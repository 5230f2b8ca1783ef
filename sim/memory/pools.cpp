// SPDX-License-Identifier: Apache-2.0
#include "memory/pools.h"

#include <vector>

#include "context/context.h"
#include "device/product.h"
#include "entry/entry.h"

namespace kshim::sim {

MemPool::MemPool(const Device& on, const CUmemPoolProps& made_with, bool is_default) noexcept
    : device(on), properties(made_with), by_default(is_default) {
  publish(this);
}

namespace {

void raise(std::atomic<std::uint64_t>& high, std::uint64_t value) noexcept {
  std::uint64_t before = high.load(std::memory_order_relaxed);
  while (before < value && !high.compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

struct DevicePools {
  MemPool* first;
  std::atomic<MemPool*> current;
};
DevicePools& pools_of(const Device& device) noexcept {
  static std::vector<DevicePools*>& list = *[] {
    auto* made = new std::vector<DevicePools*>;
    for (const Device& each : devices()) {
      CUmemPoolProps properties{};
      properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, each.ordinal};
      auto* pool = new MemPool(each, properties, true);
      made->push_back(new DevicePools{pool, pool});
    }
    return made;
  }();
  return *list[static_cast<std::size_t>(device.ordinal)];
}

CUresult require_pools(CUdevice ordinal, DevicePools*& pools) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Device* device = device_at(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  int supported = 0;
  device_attribute(*device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, supported);
  if (supported == 0) return CUDA_ERROR_NOT_SUPPORTED;
  pools = &pools_of(*device);
  return CUDA_SUCCESS;
}

CUresult require_pool(CUmemoryPool handle, MemPool*& pool) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  pool = object_of<MemPool>(handle);
  return pool != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// CUDA 13's forms name a location. Pools of host and of managed memory are not simulated, and the attributes
/// of devices say so for the host's (HOST_MEMORY_POOLS_SUPPORTED, HOST_NUMA_MEMORY_POOLS_SUPPORTED).
CUresult require_pools(const CUmemLocation* location, CUmemAllocationType type,
                       DevicePools*& pools) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  if (!managed && type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch (location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      if (device_at(location->id) == nullptr) return CUDA_ERROR_INVALID_VALUE;
      return managed ? CUDA_ERROR_NOT_SUPPORTED : require_pools(location->id, pools);
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      return CUDA_ERROR_NOT_SUPPORTED;
    case CU_MEM_LOCATION_TYPE_NONE:
      return managed ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

void MemPool::add(std::size_t bytes) noexcept {
  const std::uint64_t now = used.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  raise(used_high, now);
  raise(reserved_high, now);
}

MemPool& current_pool(const Device& device) noexcept {
  return *pools_of(device).current.load(std::memory_order_acquire);
}

void pool_discharge(void* handle, std::size_t bytes) noexcept {
  if (auto* pool = object_of<MemPool>(handle)) pool->used.fetch_sub(bytes, std::memory_order_relaxed);
}

CUresult entry::cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice device) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(device, pools); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = pools->first->handle<CUmemoryPool>();
  return CUDA_SUCCESS;
}
CUresult entry::cuDeviceGetMemPool(CUmemoryPool* out, CUdevice device) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(device, pools); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = pools->current.load(std::memory_order_acquire)->handle<CUmemoryPool>();
  return CUDA_SUCCESS;
}
CUresult entry::cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(device, pools); result != CUDA_SUCCESS) return result;
  MemPool* pool = object_of<MemPool>(handle);
  if (pool == nullptr || pool->device.ordinal != device) return CUDA_ERROR_INVALID_VALUE;
  pools->current.store(pool, std::memory_order_release);
  return CUDA_SUCCESS;
}
CUresult entry::cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(location, type, pools); result != CUDA_SUCCESS) return result;
  return entry::cuDeviceGetDefaultMemPool(out, location->id);
}
CUresult entry::cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(location, type, pools); result != CUDA_SUCCESS) return result;
  return entry::cuDeviceGetMemPool(out, location->id);
}
CUresult entry::cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  DevicePools* pools = nullptr;
  if (const CUresult result = require_pools(location, type, pools); result != CUDA_SUCCESS) return result;
  return entry::cuDeviceSetMemPool(location->id, pool);
}

CUresult entry::cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  if (out == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  DevicePools* pools = nullptr;
  const CUresult result = require_pools(&properties->location, properties->allocType, pools);
  if (result != CUDA_SUCCESS) return result;
  // CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES is 0, but a pool that is never exported works with any
  // type.
  *out = (new MemPool(pools->first->device, *properties, false))->handle<CUmemoryPool>();
  return CUDA_SUCCESS;
}

CUresult entry::cuMemPoolDestroy(CUmemoryPool handle) {
  MemPool* pool = nullptr;
  if (const CUresult result = require_pool(handle, pool); result != CUDA_SUCCESS) return result;
  if (pool->by_default) return CUDA_ERROR_INVALID_VALUE;
  // The device falls back to its default pool (CUDA Driver API, cuMemPoolDestroy).
  DevicePools& pools = pools_of(pool->device);
  MemPool* expected = pool;
  pools.current.compare_exchange_strong(expected, pools.first);
  delete pool;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemPoolTrimTo(CUmemoryPool handle, std::size_t) {
  MemPool* pool = nullptr;
  return require_pool(handle, pool);
}

CUresult entry::cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  MemPool* pool = nullptr;
  if (const CUresult result = require_pool(handle, pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto bytes = [&](const std::atomic<std::uint64_t>& from) {
    *static_cast<cuuint64_t*>(value) = from.load(std::memory_order_relaxed);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) =
          pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES].load();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return bytes(pool->release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return bytes(pool->used);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return bytes(pool->reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return bytes(pool->used_high);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult entry::cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  MemPool* pool = nullptr;
  if (const CUresult result = require_pool(handle, pool); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const cuuint64_t* bytes = static_cast<const cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES].store(
          *static_cast<const int*>(value));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold.store(*bytes, std::memory_order_relaxed);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:  // both may only be set back to 0 (cuMemPoolSetAttribute)
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: {
      if (*bytes != 0) return CUDA_ERROR_INVALID_VALUE;
      auto& high = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used_high : pool->reserved_high;
      high.store(pool->used.load(std::memory_order_relaxed), std::memory_order_relaxed);
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Every device reads and writes every pool's memory: it is host memory.
CUresult entry::cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* wanted, std::size_t count) {
  MemPool* pool = nullptr;
  if (const CUresult result = require_pool(handle, pool); result != CUDA_SUCCESS) return result;
  if (wanted == nullptr && count != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
    if (device_at(wanted[i].location.id) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Attributes of pointers, and advice about managed memory.
#include <atomic>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream_host.h"
#include "memory/allocations.h"

namespace kshim::sim {
namespace {

bool host_side(const Allocation& a) noexcept {
  return a.kind == MemoryKind::host || a.kind == MemoryKind::registered || a.kind == MemoryKind::managed;
}

template <class T>
CUresult put(void* data, T value) noexcept {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

/// One attribute of known memory. Types: "CUpointer_attribute", CUDA Driver API.
CUresult pointer_attribute(void* data, CUpointer_attribute attribute, std::uintptr_t address,
                           const Allocation& a) noexcept {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, a.context != nullptr ? a.context->handle<CUcontext>() : nullptr);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: {
      const bool host = a.kind == MemoryKind::host || a.kind == MemoryKind::registered;
      return put(data, static_cast<unsigned>(host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
    }
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, static_cast<CUdeviceptr>(address));
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!host_side(a)) return CUDA_ERROR_INVALID_VALUE;
      return put(data, reinterpret_cast<void*>(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, 0U);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(data, static_cast<unsigned long long>(a.id));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, a.kind == MemoryKind::managed ? 1U : 0U);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, a.device);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return put(data, false);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(data, static_cast<CUdeviceptr>(a.base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(data, a.size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data, std::uint64_t{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, static_cast<unsigned>(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, static_cast<CUmemoryPool>(a.pool));
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

/// What cuPointerGetAttributes gives for memory that CUDA does not know: null and zero, and -2 for the device
/// (CU_DEVICE_INVALID). The address itself as device pointer: host memory that is not registered can be none.
void unknown_attribute(void* data, CUpointer_attribute attribute, std::uintptr_t address) noexcept {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put<void*>(data, nullptr);
      return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put(data, reinterpret_cast<void*>(address));
      return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put<std::uint64_t>(data, 0);
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put(data, false);
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put(data, CU_DEVICE_INVALID);
      return;
    default:
      put(data, 0U);
  }
}

CUresult check_managed(CUdeviceptr pointer, std::size_t size) noexcept {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Allocation found;
  const bool managed = find_allocation(address_of(pointer), found) && found.kind == MemoryKind::managed;
  return managed && size != 0 && covers(address_of(pointer), size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool known_location(const CUmemLocation& location) noexcept {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return device_at(location.id) != nullptr;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return true;
    default:
      return false;
  }
}

CUmemLocation location_of(CUdevice device) noexcept {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

}  // namespace

CUresult entry::cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Allocation found;
  if (data == nullptr || !find_allocation(address_of(pointer), found)) return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(data, attribute, address_of(pointer), found);
}

CUresult entry::cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                       CUdeviceptr pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation found;
  const bool known = find_allocation(address_of(pointer), found);
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] < CU_POINTER_ATTRIBUTE_CONTEXT ||
        attributes[i] > CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (known && pointer_attribute(data[i], attributes[i], address_of(pointer), found) == CUDA_SUCCESS)
      continue;
    // An attribute the memory does not have (host pointer of device memory) is null as well.
    unknown_attribute(data[i], attributes[i], known ? 0 : address_of(pointer));
  }
  return CUDA_SUCCESS;
}

CUresult entry::cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Allocation found;
  const bool known = value != nullptr && find_allocation(address_of(pointer), found);
  // Every copy is already as synchronous as SYNC_MEMOPS asks for.
  return known && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Pages do not move: host and device see the same ones.
CUresult entry::cuMemAdvise_v2(CUdeviceptr pointer, std::size_t size, CUmem_advise advice,
                               CUmemLocation location) {
  if (const CUresult result = check_managed(pointer, size); result != CUDA_SUCCESS) return result;
  const bool placed =
      advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  if (advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  return placed && !known_location(location) ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult entry::cuMemAdvise(CUdeviceptr pointer, std::size_t size, CUmem_advise advice, CUdevice device) {
  return entry::cuMemAdvise_v2(pointer, size, advice, location_of(device));
}
CUresult entry::cuMemPrefetchAsync_v2(CUdeviceptr pointer, std::size_t size, CUmemLocation location,
                                      unsigned flags, CUstream stream) {
  if (const CUresult result = check_managed(pointer, size); result != CUDA_SUCCESS) return result;
  if (any_stream(stream) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return known_location(location) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult entry::cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t size, CUdevice device, CUstream stream) {
  return entry::cuMemPrefetchAsync_v2(pointer, size, location_of(device), 0, stream);
}

// What was advised is not kept: answers are those for memory that nothing was advised of.
CUresult entry::cuMemRangeGetAttribute(void* data, std::size_t data_size, CUmem_range_attribute attribute,
                                       CUdeviceptr pointer, std::size_t size) {
  if (const CUresult result = check_managed(pointer, size); result != CUDA_SUCCESS) return result;
  if (data == nullptr || data_size == 0 || data_size % sizeof(int) != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool one = data_size == sizeof(int);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return one ? put(data, 0) : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return one ? put(data, CU_DEVICE_INVALID) : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      for (std::size_t i = 0; i < data_size / sizeof(int); ++i)
        static_cast<CUdevice*>(data)[i] = CU_DEVICE_INVALID;
      return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return one ? put(data, CU_MEM_LOCATION_TYPE_INVALID) : CUDA_ERROR_INVALID_VALUE;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult entry::cuMemRangeGetAttributes(void** data, std::size_t* sizes, CUmem_range_attribute* attributes,
                                        std::size_t count, CUdeviceptr pointer, std::size_t size) {
  if (data == nullptr || sizes == nullptr || attributes == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i) {
    const CUresult result = entry::cuMemRangeGetAttribute(data[i], sizes[i], attributes[i], pointer, size);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

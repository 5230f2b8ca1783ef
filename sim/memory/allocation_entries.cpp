// SPDX-License-Identifier: Apache-2.0
// Allocation of device, managed and host memory.
#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream.h"
#include "memory/allocations.h"

namespace kshim::sim {
namespace {

constexpr std::size_t kPitchAlignment = 512;

CUresult require_memory_context(Context*& context) noexcept {
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  return refuse_unsafe_call();
}

CUresult allocate_host(void** out, std::size_t size, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_memory_context(context); result != CUDA_SUCCESS) return result;
  constexpr unsigned known =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (out == nullptr || size == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  Allocation memory;
  const CUresult result = allocate(*context, size, MemoryKind::host, flags, memory);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<void*>(memory.base);
  return result;
}

}  // namespace

CUresult entry::cuMemAlloc_v2(CUdeviceptr* out, std::size_t size) {
  Context* context = nullptr;
  if (const CUresult result = require_memory_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Allocation memory;
  const CUresult result = allocate(*context, size, MemoryKind::device, 0, memory);
  if (result == CUDA_SUCCESS) *out = memory.base;
  return result;
}

CUresult entry::cuMemAllocPitch_v2(CUdeviceptr* out, std::size_t* pitch, std::size_t width,
                                   std::size_t height, unsigned element) {
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  if (width > PTRDIFF_MAX - kPitchAlignment) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (height > PTRDIFF_MAX / row) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = entry::cuMemAlloc_v2(out, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

// The address identifies the context, so no context has to be current (Numba frees so at cuda.close()).
CUresult entry::cuMemFree_v2(CUdeviceptr pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  if (pointer == 0) return CUDA_SUCCESS;
  Allocation found;
  const bool ours = find_allocation(address_of(pointer), found) && found.base == address_of(pointer);
  if (!ours || (found.kind != MemoryKind::device && found.kind != MemoryKind::managed))
    return CUDA_ERROR_INVALID_VALUE;
  drain_context(*found.context);  // no operation may still be using it
  if ((found.flags & kOwnedByGraph) != 0) return CUDA_SUCCESS;
  return release(found.base, MemoryKind::device, MemoryKind::managed) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuMemAllocManaged(CUdeviceptr* out, std::size_t size, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_memory_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
    return CUDA_ERROR_INVALID_VALUE;
  Allocation memory;
  const CUresult result = allocate(*context, size, MemoryKind::managed, flags, memory);
  if (result == CUDA_SUCCESS) *out = memory.base;
  return result;
}

CUresult entry::cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  const std::uint64_t all = context->device.memory_bytes;
  const std::uint64_t used = used_bytes(context->device.ordinal);
  if (free != nullptr) *free = used < all ? all - used : 0;
  if (total != nullptr) *total = all;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* size, CUdeviceptr pointer) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Allocation found;
  if (!find_allocation(address_of(pointer), found)) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = found.base;
  if (size != nullptr) *size = found.size;
  return CUDA_SUCCESS;
}

// Host memory
// -----------------------------------------------------------------------------------------------------------

CUresult entry::cuMemHostAlloc(void** out, std::size_t size, unsigned flags) {
  return allocate_host(out, size, flags);
}
CUresult entry::cuMemAllocHost_v2(void** out, std::size_t size) { return allocate_host(out, size, 0); }

CUresult entry::cuMemFreeHost(void* pointer) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Allocation found;
  if (find_allocation(address, found) && found.context != nullptr) drain_context(*found.context);
  return release(address, MemoryKind::host, MemoryKind::host) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuMemHostRegister_v2(void* pointer, std::size_t size, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_memory_context(context); result != CUDA_SUCCESS) return result;
  constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                             CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (pointer == nullptr || size == 0 || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0) return CUDA_ERROR_NOT_SUPPORTED;  // as the attribute says
  return adopt(context, context->device.ordinal, reinterpret_cast<std::uintptr_t>(pointer), size,
               MemoryKind::registered, flags);
}
CUresult entry::cuMemHostRegister(void* pointer, std::size_t size, unsigned flags) {
  return entry::cuMemHostRegister_v2(pointer, size, flags);
}

CUresult entry::cuMemHostUnregister(void* pointer) {
  Context* context = nullptr;
  if (const CUresult result = require_memory_context(context); result != CUDA_SUCCESS) return result;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return release(address, MemoryKind::registered, MemoryKind::registered)
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult entry::cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* pointer, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Allocation found;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (out == nullptr || flags != 0 || !find_allocation(address, found)) return CUDA_ERROR_INVALID_VALUE;
  if (found.kind != MemoryKind::host && found.kind != MemoryKind::registered) return CUDA_ERROR_INVALID_VALUE;
  *out = address;
  return CUDA_SUCCESS;
}

CUresult entry::cuMemHostGetFlags(unsigned* flags, void* pointer) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  Allocation found;
  const bool known =
      find_allocation(reinterpret_cast<std::uintptr_t>(pointer), found) && found.kind == MemoryKind::host;
  if (flags == nullptr || !known) return CUDA_ERROR_INVALID_VALUE;
  // With unified addressing all of it is portable and mapped (Programming Guide, "Unified Virtual Address
  // Space").
  *flags = found.flags | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

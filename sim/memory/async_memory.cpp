// SPDX-License-Identifier: Apache-2.0
#include "memory/async_memory.h"

#include <cstring>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream_host.h"
#include "memory/allocations.h"
#include "memory/pools.h"

namespace kshim::sim {
namespace {

/// Memory comes from the pool's device; the context is only its owner.
CUresult allocate_from(MemPool& pool, Stream& stream, std::size_t size, CUdeviceptr* out) {
  if (out == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool same_device = &pool.device == &stream.context.device;
  Context& owner = same_device ? stream.context : primary_context(pool.device);
  const bool capturing = stream.capture.load(std::memory_order_acquire) != nullptr;
  const std::size_t most = pool.properties.maxSize;
  if (most != 0 && (size > most || pool.used.load(std::memory_order_relaxed) > most - size)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Allocation memory;
  const CUresult result = allocate(owner, size, MemoryKind::device, capturing ? kOwnedByGraph : 0, memory,
                                   capturing ? nullptr : pool.handle<void*>());
  if (result != CUDA_SUCCESS) return result;
  if (!capturing) {
    pool.add(size);
    *out = memory.base;
    return CUDA_SUCCESS;
  }
  AllocateOperation operation;
  operation.memory = std::make_shared<const AllocateOperation::Memory>(memory.base);
  operation.params.poolProps = pool.properties;
  operation.params.bytesize = size;
  operation.params.dptr = memory.base;
  const CUresult captured = enqueue(stream, operation);
  if (captured == CUDA_SUCCESS) *out = memory.base;
  return captured;
}

CUresult require_stream(CUstream handle, Stream*& stream) noexcept {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  stream = any_stream(handle);
  return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

AllocateOperation::Memory::~Memory() { release(address_of(address), MemoryKind::device, MemoryKind::device); }

void AllocateOperation::execute() { std::memset(pointer_of(params.dptr), 0, params.bytesize); }

void FreeOperation::execute() {
  Allocation found;
  if (find_allocation(address_of(address), found) && (found.flags & kOwnedByGraph) == 0) {
    release(found.base, MemoryKind::device, MemoryKind::managed);
  }
}

CUresult entry::cuMemAllocAsync(CUdeviceptr* out, std::size_t size, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  int supported = 0;
  device_attribute(stream->context.device, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, supported);
  if (supported == 0) return CUDA_ERROR_NOT_SUPPORTED;
  return allocate_from(current_pool(stream->context.device), *stream, size, out);
}

CUresult entry::cuMemAllocFromPoolAsync(CUdeviceptr* out, std::size_t size, CUmemoryPool pool_handle,
                                        CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  MemPool* pool = object_of<MemPool>(pool_handle);
  return pool != nullptr ? allocate_from(*pool, *stream, size, out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult entry::cuMemFreeAsync(CUdeviceptr pointer, CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (pointer == 0) return CUDA_SUCCESS;
  Allocation found;
  const bool ours = find_allocation(address_of(pointer), found) && found.base == address_of(pointer);
  if (!ours || (found.kind != MemoryKind::device && found.kind != MemoryKind::managed))
    return CUDA_ERROR_INVALID_VALUE;
  FreeOperation operation(pointer);
  return enqueue(*stream, operation);
}

}  // namespace kshim::sim

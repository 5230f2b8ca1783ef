// SPDX-License-Identifier: Apache-2.0
// Limits and peer access of the current context.
#include <algorithm>

#include "context/context.h"
#include "entry/entry.h"

namespace kshim::sim {
namespace {

/// 215 for what the device has no such limit for (CUDA Driver API, cuCtxSetLimit).
CUresult check_limit(const Context& context, CUlimit limit) noexcept {
  const unsigned cc = context.device.limits.cc.number();
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_SHMEM_SIZE:
    case CU_LIMIT_CIG_ENABLED:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED:
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return cc >= 35 && cc < 90 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return cc >= 35 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
      return cc >= 80 ? CUDA_SUCCESS : CUDA_ERROR_UNSUPPORTED_LIMIT;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult entry::cuCtxGetLimit(std::size_t* value, CUlimit limit) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_limit(*context, limit); result != CUDA_SUCCESS) return result;
  *value = context->limits[limit].load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxSetLimit(CUlimit limit, std::size_t value) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = check_limit(*context, limit); result != CUDA_SUCCESS) return result;
  switch (limit) {
    case CU_LIMIT_STACK_SIZE: {
      // At most 512 KiB a thread (Technical Specifications: local memory per thread), in steps of 16 bytes.
      constexpr std::size_t kMax = std::size_t{512} << 10;
      if (value > kMax) return CUDA_ERROR_INVALID_VALUE;
      value = (value + 15) / 16 * 16;
      break;
    }
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      if (value > 128) return CUDA_ERROR_INVALID_VALUE;
      break;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE: {
      int most = 0;
      device_attribute(context->device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, most);
      value = std::min(value, static_cast<std::size_t>(most));
      break;
    }
    case CU_LIMIT_PRINTF_FIFO_SIZE:
    case CU_LIMIT_MALLOC_HEAP_SIZE:
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      if (value == 0) return CUDA_ERROR_INVALID_VALUE;
      break;
    default:  // the others are for reading, or for interoperability that is not simulated
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
  context->limits[limit].store(value, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  const Context* peer = object_of<Context>(handle);
  if (peer == nullptr || peer == context) return CUDA_ERROR_INVALID_CONTEXT;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (&peer->device == &context->device) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  const std::lock_guard guard(context->lock);
  return context->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult entry::cuCtxDisablePeerAccess(CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  const Context* peer = object_of<Context>(handle);
  if (peer == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::lock_guard guard(context->lock);
  return context->peers.erase(peer) != 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Contexts that a program creates, the calling thread's stack, and queries of the current context.
#include <algorithm>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream.h"

namespace kshim::sim {
namespace {

bool good_flags(unsigned flags) noexcept {
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~unsigned{CU_CTX_FLAGS_MASK}) == 0 && (schedule & (schedule - 1)) == 0;
}

CUresult create(CUcontext* out, unsigned flags, CUdevice ordinal) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Device* device = device_at(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (out == nullptr || !good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  auto* context = new Context(*device, false, flags);
  context->alive.store(true, std::memory_order_release);
  push_current(context);
  *out = context->handle<CUcontext>();
  return CUDA_SUCCESS;
}

/// A destroyed context's object stays: other threads may have it on their stacks, where it must answer 709.
void keep(Context* context) {
  static std::mutex& lock = *new std::mutex;
  static std::vector<Context*>& ended = *new std::vector<Context*>;
  const std::lock_guard guard(lock);
  ended.push_back(context);
}

/// The context behind a handle, or the current one for null; 201 where there is none.
CUresult find_context(CUcontext handle, Context*& context) noexcept {
  if (handle == nullptr) return require_context(context);
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  context = object_of<Context>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->alive.load(std::memory_order_acquire) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

}  // namespace

CUresult entry::cuCtxCreate(CUcontext* out, unsigned flags, CUdevice device) {
  return create(out, flags, device);
}
CUresult entry::cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice device) {
  return create(out, flags, device);
}
CUresult entry::cuCtxCreate_v3(CUcontext* out, CUexecAffinityParam*, int affinities, unsigned flags,
                               CUdevice device) {
  if (affinities != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;  // only under MPS
  return create(out, flags, device);
}
CUresult entry::cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* parameters, unsigned flags,
                               CUdevice device) {
  if (parameters != nullptr && parameters->numExecAffinityParams != 0)
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create(out, flags, device);
}

CUresult entry::cuCtxDestroy_v2(CUcontext handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive.exchange(false)) return CUDA_ERROR_INVALID_CONTEXT;
  empty_context(*context);
  drop_current(context);
  context->retire();
  keep(context);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxDestroy(CUcontext handle) { return entry::cuCtxDestroy_v2(handle); }

// The stack
// -------------------------------------------------------------------------------------------------------------

CUresult entry::cuCtxPushCurrent_v2(CUcontext handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  push_current(context);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxPushCurrent(CUcontext handle) { return entry::cuCtxPushCurrent_v2(handle); }

CUresult entry::cuCtxPopCurrent_v2(CUcontext* out) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = nullptr;
  if (!pop_current(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = context->handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxPopCurrent(CUcontext* out) { return entry::cuCtxPopCurrent_v2(out); }

// A primary context may be set before it is retained: the runtime does so.
CUresult entry::cuCtxSetCurrent(CUcontext handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (handle != nullptr && context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  set_current(context);
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxGetCurrent(CUcontext* out) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Context* context = current_context();
  *out = context != nullptr ? context->handle<CUcontext>() : nullptr;
  return CUDA_SUCCESS;
}

// Questions
// -------------------------------------------------------------------------------------------------------------

CUresult entry::cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Context* context = handle != nullptr ? object_of<Context>(handle) : current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = context->device.ordinal;
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxGetDevice(CUdevice* out) { return entry::cuCtxGetDevice_v2(out, nullptr); }

CUresult entry::cuCtxGetFlags(unsigned* flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxSetFlags(unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (!good_flags(flags)) return CUDA_ERROR_INVALID_VALUE;
  context->flags.store(flags, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxGetId(CUcontext handle, unsigned long long* id) {
  Context* context = nullptr;
  if (const CUresult result = find_context(handle, context); result != CUDA_SUCCESS) return result;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

// 3020: all that cuCtxCreate_v2 and later make (cuda.h has no later number for it).
CUresult entry::cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  Context* context = nullptr;
  if (const CUresult result = find_context(handle, context); result != CUDA_SUCCESS) return result;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxSynchronize_v2(CUcontext handle) {
  Context* context = nullptr;
  if (const CUresult result = find_context(handle, context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_unsafe_call(); result != CUDA_SUCCESS) return result;
  drain_context(*context);
  return fault_in(*context);
}
CUresult entry::cuCtxSynchronize() { return entry::cuCtxSynchronize_v2(nullptr); }

CUresult entry::cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (least != nullptr) *least = kMinPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult entry::cuCtxGetCacheConfig(CUfunc_cache* config) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = context->cache_config.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxSetCacheConfig(CUfunc_cache config) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (config < CU_FUNC_CACHE_PREFER_NONE || config > CU_FUNC_CACHE_PREFER_EQUAL)
    return CUDA_ERROR_INVALID_VALUE;
  context->cache_config.store(config, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = context->shared_config.load(std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxSetSharedMemConfig(CUsharedconfig config) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (config < CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE || config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  context->shared_config.store(config, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxResetPersistingL2Cache() {
  Context* context = nullptr;
  return require_context(context);
}

// Events of a whole context
// -------------------------------------------------------------------------------------------------------------

// By the legacy stream, which waits for the blocking ones and they for it. Nothing is pending in others
// unless a host function is.
CUresult entry::cuCtxRecordEvent(CUcontext handle, CUevent event) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  push_current(context);
  const CUresult result = entry::cuEventRecord(event, nullptr);
  pop_current(context);
  return result;
}
CUresult entry::cuCtxWaitEvent(CUcontext handle, CUevent event) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  push_current(context);
  const CUresult result = entry::cuStreamWaitEvent(nullptr, event, 0);
  pop_current(context);
  return result;
}

// The usage count of CUDA 2 (PyCUDA detaches at its end): 1 when a context is made; it ends with the last.
CUresult entry::cuCtxAttach(CUcontext* out, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  context->attached.fetch_add(1, std::memory_order_relaxed);
  *out = context->handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult entry::cuCtxDetach(CUcontext handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Context* context = object_of<Context>(handle);
  if (context == nullptr || context != current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->attached.fetch_sub(1, std::memory_order_relaxed) > 1) return CUDA_SUCCESS;
  if (context->primary) return CUDA_SUCCESS;
  return entry::cuCtxDestroy_v2(handle);
}

}  // namespace kshim::sim

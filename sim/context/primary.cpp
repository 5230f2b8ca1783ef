// SPDX-License-Identifier: Apache-2.0
// Primary contexts: counted, made at the first retain, emptied at the last release or at a reset. Their
// handle is the same forever.
#include "context/context.h"
#include "entry/entry.h"

namespace kshim::sim {
namespace {

CUresult find_primary(CUdevice ordinal, Context*& context) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  const Device* device = device_at(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  context = &primary_context(*device);
  return CUDA_SUCCESS;
}

/// Marks the end first, so that other threads' calls answer 709 while it is emptied. Called with `turn` held.
void end_primary(Context& context) noexcept {
  context.alive.store(false, std::memory_order_release);
  empty_context(context);
}

}  // namespace

CUresult entry::cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  Context* context = nullptr;
  if (const CUresult result = find_primary(ordinal, context); result != CUDA_SUCCESS) return result;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(context->turn);
  ++context->retained;
  context->alive.store(true, std::memory_order_release);
  *out = context->handle<CUcontext>();
  return CUDA_SUCCESS;
}

CUresult entry::cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  Context* context = nullptr;
  if (const CUresult result = find_primary(ordinal, context); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(context->turn);
  if (context->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context->retained == 0) end_primary(*context);
  return CUDA_SUCCESS;
}
CUresult entry::cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return entry::cuDevicePrimaryCtxRelease_v2(ordinal);
}

CUresult entry::cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  Context* context = nullptr;
  if (const CUresult result = find_primary(ordinal, context); result != CUDA_SUCCESS) return result;
  const std::lock_guard guard(context->turn);
  context->retained = 0;
  end_primary(*context);
  return CUDA_SUCCESS;
}
CUresult entry::cuDevicePrimaryCtxReset(CUdevice ordinal) {
  return entry::cuDevicePrimaryCtxReset_v2(ordinal);
}

CUresult entry::cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = find_primary(ordinal, context); result != CUDA_SUCCESS) return result;
  const unsigned schedule = flags & CU_CTX_SCHED_MASK;
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0 || (schedule & (schedule - 1)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  context->flags.store(flags, std::memory_order_relaxed);
  return CUDA_SUCCESS;
}
CUresult entry::cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned flags) {
  return entry::cuDevicePrimaryCtxSetFlags_v2(ordinal, flags);
}

CUresult entry::cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  Context* context = nullptr;
  if (const CUresult result = find_primary(ordinal, context); result != CUDA_SUCCESS) return result;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags.load(std::memory_order_relaxed);
  *active = context->alive.load(std::memory_order_acquire) ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// Stream management.
#include <algorithm>
#include <cstring>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream.h"
#include "launch/stream_host.h"
#include "memory/allocations.h"

namespace kshim::sim {
namespace {

/// Initialized, and a stream that is there: 3, 201, 400.
CUresult require_stream(CUstream handle, Stream*& stream) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  stream = any_stream(handle);
  if (stream != nullptr) return CUDA_SUCCESS;
  const bool special = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  if (!special) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  const CUresult result = require_context(context);
  return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create(CUstream* out, unsigned flags, int priority) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  if (out == nullptr || (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) != 0) return CUDA_ERROR_INVALID_VALUE;
  // Priorities outside of the range are moved to its nearest end (CUDA Driver API,
  // cuStreamCreateWithPriority).
  Stream& stream = make_stream(*context, flags, std::clamp(priority, kGreatestPriority, kMinPriority));
  *out = stream.handle<CUstream>();
  return CUDA_SUCCESS;
}

/// cuStreamAddCallback's function has other parameters than a host function.
struct CallbackOperation final : Operation {
  CallbackOperation(CUstream of, CUstreamCallback call, void* with) noexcept
      : stream(of), callback(call), data(with) {}
  CUstream stream;
  CUstreamCallback callback;
  void* data;
  CUgraphNodeType type() const noexcept override { return CU_GRAPH_NODE_TYPE_HOST; }
  void execute() override { callback(stream, CUDA_SUCCESS, data); }
  std::unique_ptr<Operation> clone() const override { return std::make_unique<CallbackOperation>(*this); }
  bool on_driver_thread() const noexcept override { return true; }
};

}  // namespace

Stream* any_stream(CUstream handle) noexcept {
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* context = nullptr;
    return require_context(context) == CUDA_SUCCESS ? context->stream(handle) : nullptr;
  }
  return object_of<Stream>(handle);
}

CUresult entry::cuStreamCreate(CUstream* out, unsigned flags) { return create(out, flags, 0); }
CUresult entry::cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return create(out, flags, priority);
}

CUresult entry::cuStreamDestroy_v2(CUstream handle) {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  Stream* stream = object_of<Stream>(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  abandon_capture(*stream);
  end_stream(*stream);
  return CUDA_SUCCESS;
}
CUresult entry::cuStreamDestroy(CUstream handle) { return entry::cuStreamDestroy_v2(handle); }

CUresult entry::cuStreamSynchronize(CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_capturing(*stream); result != CUDA_SUCCESS) return result;
  wait_for(*stream);
  return fault_in(stream->context);
}

CUresult entry::cuStreamQuery(CUstream handle) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_capturing(*stream); result != CUDA_SUCCESS) return result;
  return is_idle(*stream) ? fault_in(stream->context) : CUDA_ERROR_NOT_READY;
}

CUresult entry::cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  Event* event = object_of<Event>(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~unsigned{CU_EVENT_WAIT_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return enqueue_wait(*stream, *event, flags == CU_EVENT_WAIT_EXTERNAL);
}

CUresult entry::cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  HostOperation operation({function, data});
  return enqueue(*stream, operation);
}

CUresult entry::cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = refuse_capturing(*stream); result != CUDA_SUCCESS) return result;
  CallbackOperation operation(handle, callback, data);
  return enqueue(*stream, operation);
}

// Managed memory is reachable from everywhere here, attached or not.
CUresult entry::cuStreamAttachMemAsync(CUstream handle, CUdeviceptr pointer, std::size_t, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  Allocation found;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool managed = find_allocation(address_of(pointer), found) && found.kind == MemoryKind::managed;
  return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Questions
// -------------------------------------------------------------------------------------------------------------

CUresult entry::cuStreamGetFlags(CUstream handle, unsigned* flags) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

CUresult entry::cuStreamGetPriority(CUstream handle, int* priority) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

CUresult entry::cuStreamGetId(CUstream handle, unsigned long long* id) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult entry::cuStreamGetCtx(CUstream handle, CUcontext* context) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = stream->context.handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult entry::cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  const CUresult result = entry::cuStreamGetCtx(handle, context);
  if (result == CUDA_SUCCESS && green != nullptr) *green = nullptr;
  return result;
}

CUresult entry::cuStreamGetGreenCtx(CUstream handle, CUgreenCtx* green) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (green == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *green = nullptr;  // there are none here
  return CUDA_SUCCESS;
}

CUresult entry::cuStreamGetDevice(CUstream handle, CUdevice* device) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = stream->context.device.ordinal;
  return CUDA_SUCCESS;
}

// Attributes
// -------------------------------------------------------------------------------------------------------------

CUresult entry::cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(stream->context.lock);
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memcpy(value, &stream->attributes.policy, sizeof stream->attributes.policy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      value->accessPolicyWindow = stream->attributes.window;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      value->priority = stream->priority;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      value->memSyncDomainMap = stream->attributes.domain_map;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      value->memSyncDomain = stream->attributes.domain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// A priority is accepted and stays what it was made with.
CUresult entry::cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute,
                                     const CUstreamAttrValue* value) {
  Stream* stream = nullptr;
  if (const CUresult result = require_stream(handle, stream); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(stream->context.lock);
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
      std::memcpy(&stream->attributes.policy, value, sizeof stream->attributes.policy);
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      stream->attributes.window = value->accessPolicyWindow;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      stream->attributes.domain_map = value->memSyncDomainMap;
      return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      stream->attributes.domain = value->memSyncDomain;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult entry::cuStreamCopyAttributes(CUstream to, CUstream from) {
  Stream* target = nullptr;
  Stream* source = nullptr;
  if (const CUresult result = require_stream(to, target); result != CUDA_SUCCESS) return result;
  if (const CUresult result = require_stream(from, source); result != CUDA_SUCCESS) return result;
  StreamAttributes copy;
  {
    const std::lock_guard guard(source->context.lock);
    copy = source->attributes;
  }
  const std::lock_guard guard(target->context.lock);
  target->attributes = copy;
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

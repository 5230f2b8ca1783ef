// SPDX-License-Identifier: Apache-2.0
// Event management.
#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "launch/stream.h"
#include "launch/stream_host.h"

namespace kshim::sim {
namespace {

CUresult require_event(CUevent handle, Event*& event) noexcept {
  if (const CUresult result = check_initialized(); result != CUDA_SUCCESS) return result;
  event = object_of<Event>(handle);
  return event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/// 400: never recorded, or made without timing. 600: not done yet.
CUresult require_time(const Event& event) noexcept {
  if ((event.flags & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (event.recorded.load(std::memory_order_acquire) == 0) return CUDA_ERROR_INVALID_HANDLE;
  return is_complete(event) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // namespace

CUresult entry::cuEventCreate(CUevent* out, unsigned flags) {
  Context* context = nullptr;
  if (const CUresult result = require_context(context); result != CUDA_SUCCESS) return result;
  constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (out == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0) {
    return (flags & CU_EVENT_DISABLE_TIMING) == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
  *out = (new Event(*context, flags))->handle<CUevent>();
  return CUDA_SUCCESS;
}

CUresult entry::cuEventDestroy_v2(CUevent handle) {
  Event* event = nullptr;
  if (const CUresult result = require_event(handle, event); result != CUDA_SUCCESS) return result;
  end_event(*event);
  return CUDA_SUCCESS;
}
CUresult entry::cuEventDestroy(CUevent handle) { return entry::cuEventDestroy_v2(handle); }

CUresult entry::cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags) {
  Event* event = nullptr;
  if (const CUresult result = require_event(handle, event); result != CUDA_SUCCESS) return result;
  Stream* stream = any_stream(stream_handle);
  // Event and stream must be of one context (CUDA Driver API, cuEventRecord).
  if (stream == nullptr || &stream->context != &event->context) return CUDA_ERROR_INVALID_HANDLE;
  if ((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return enqueue_record(*stream, *event, flags == CU_EVENT_RECORD_EXTERNAL);
}
CUresult entry::cuEventRecord(CUevent handle, CUstream stream) {
  return entry::cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult entry::cuEventQuery(CUevent handle) {
  Event* event = nullptr;
  if (const CUresult result = require_event(handle, event); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_captured(*event); result != CUDA_SUCCESS) return result;
  return is_complete(*event) ? fault_in(event->context) : CUDA_ERROR_NOT_READY;
}

CUresult entry::cuEventSynchronize(CUevent handle) {
  Event* event = nullptr;
  if (const CUresult result = require_event(handle, event); result != CUDA_SUCCESS) return result;
  if (const CUresult result = refuse_captured(*event); result != CUDA_SUCCESS) return result;
  wait_for(*event);
  return fault_in(event->context);
}

CUresult entry::cuEventElapsedTime_v2(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  Event* start = nullptr;
  Event* end = nullptr;
  if (const CUresult result = require_event(start_handle, start); result != CUDA_SUCCESS) return result;
  if (const CUresult result = require_event(end_handle, end); result != CUDA_SUCCESS) return result;
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (const Event* event : {start, end}) {
    if (const CUresult result = refuse_captured(*event); result != CUDA_SUCCESS) return result;
    if (const CUresult result = require_time(*event); result != CUDA_SUCCESS) return result;
  }
  const std::int64_t from = start->time_ns.load(std::memory_order_relaxed);
  const std::int64_t to = end->time_ns.load(std::memory_order_relaxed);
  *milliseconds = static_cast<float>(static_cast<double>(to - from) / 1e6);
  return CUDA_SUCCESS;
}
CUresult entry::cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return entry::cuEventElapsedTime_v2(milliseconds, start, end);
}

}  // namespace kshim::sim

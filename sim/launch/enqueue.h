// SPDX-License-Identifier: Apache-2.0
// The seam between streams and capture. Entry points call enqueue() and its two relatives; those ask here whether the
// stream captures. The capture_* functions are graph/capture.cpp's.
#pragma once
#include "launch/stream.h"

namespace kshim::sim {

/// An operation in a stream: run, queued, or made a graph node of the stream's capture.
CUresult enqueue(Stream& stream, Operation& operation);
CUresult enqueue_record(Stream& stream, Event& event);
CUresult enqueue_wait(Stream& stream, Event& event);

/// For calls that must not be made while the calling thread captures in global mode (cuMemAlloc, cuMemFree ...), or, in
/// relaxed mode of the asking thread, may (CUDA Driver API, cuThreadExchangeStreamCaptureMode): 900, which invalidates.
CUresult capture_unsafe_call() noexcept;
/// A capture goes on somewhere in the process: the fast path of all capture questions.
bool capture_active() noexcept;

/// What follows is only asked while capture_active().
/// Use of the legacy stream while a blocking stream of its context captures: 901. Else 0.
CUresult capture_implicit_use(Stream& legacy) noexcept;
/// Adds a node behind the stream's frontier; 901 when the capture is invalidated.
CUresult capture_operation(Stream& stream, Operation& operation);
/// The event takes the stream's frontier and its capture's id.
CUresult capture_record(Stream& stream, Event& event);
/// The event was recorded in a capture: `stream` joins it (905 when it captures for another). An event recorded outside
/// and waited for inside a capture: 906.
CUresult capture_wait(Stream& stream, Event& event);
/// Synchronising or querying a capturing stream: 900, which invalidates.
CUresult capture_synchronize(Stream& stream) noexcept;
/// Querying or synchronising an event whose last record was captured: 907.
CUresult capture_event_query(Event& event) noexcept;
/// cuCtxSynchronize while a stream of the context captures: 900, which invalidates.
CUresult capture_context_synchronize(Context& context) noexcept;
/// A stream or event ends: captures forget it.
void capture_forget(Stream& stream) noexcept;
void capture_forget(Event& event) noexcept;

}  // namespace kshim::sim

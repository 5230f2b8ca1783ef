// SPDX-License-Identifier: Apache-2.0
// The interface of stream capture: work is submitted to a stream by enqueue*(), which runs it, queues it, or
// adds graph nodes if the stream captures. Rules: CUDA C++ Programming Guide 13.0,
// "Creating a Graph Using Stream Capture"; codes: cuda.h, 900 to 908.
#pragma once
#include "launch/stream.h"

namespace kshim::sim {

/// Whether any stream of the process captures: the only check on the launch path.
bool any_capture() noexcept;

/// Copies, memsets, host functions, launches. 901 when the capture is broken, 906 for the legacy stream while
/// a blocking stream of its context captures.
CUresult enqueue(Stream& stream, Operation& operation);
/// cuEventRecord: in a capture the event stores the last nodes of the stream.
/// `external` (CU_EVENT_RECORD_EXTERNAL): a node that records the event at each launch of the graph.
CUresult enqueue_record(Stream& stream, Event& event, bool external = false);
/// cuStreamWaitEvent: an event recorded in a capture pulls the stream into it.
CUresult enqueue_wait(Stream& stream, Event& event, bool external = false);

/// cuStreamSynchronize, cuStreamQuery and others that ask how far a stream is: 900 where it captures (which
/// breaks the capture), 906 for the legacy stream beside a capture.
CUresult refuse_capturing(Stream& stream);
/// cuEventSynchronize, cuEventQuery: 907 for an event last recorded in a capture.
CUresult refuse_captured(const Event& event);
/// Calls that may synchronize implicitly (cuMemAlloc, cuMemFree, cuMemHostAlloc, synchronous copies,
/// cuCtxSynchronize): 900 while a capture of mode global (any thread's) or thread-local (this thread's) is
/// under way, unless this thread is in relaxed mode (cuThreadExchangeStreamCaptureMode).
CUresult refuse_unsafe_call();

/// A stream or a context ends: its capture does, too.
void abandon_capture(Stream& stream);

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
#include "graph/capture.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "context/context.h"
#include "graph/capture_state.h"

namespace kshim::sim {
namespace {

std::atomic<int> g_captures{0};
std::atomic<std::uint64_t> g_next_id{1};

std::vector<Capture*>& captures() noexcept {
  static std::vector<Capture*>& instance = *new std::vector<Capture*>;
  return instance;
}

/// With the lock held: the capture a stream takes part in.
Capture* capture_of(const Stream& stream) noexcept { return stream.capture.load(std::memory_order_acquire); }

CUresult break_off(Capture& capture, CUresult why) noexcept {
  capture.broken = true;
  return why;
}

/// The legacy stream waits for every blocking stream of its context, which is invalid during a capture.
CUresult refuse_implicit(const Stream& stream) noexcept {
  if (!stream.legacy) return CUDA_SUCCESS;
  for (Capture* capture : captures()) {
    for (const auto& [member, frontier] : capture->frontiers) {
      if (&member->context == &stream.context && member->blocking()) {
        return break_off(*capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
      }
    }
  }
  return CUDA_SUCCESS;
}

Capture* capture_by_id(std::uint64_t id) noexcept {
  const auto found =
      std::find_if(captures().begin(), captures().end(), [&](const Capture* c) { return c->id == id; });
  return found != captures().end() ? *found : nullptr;
}

/// With the lock held, in a capture that is whole: one more node.
void add_node(Capture& capture, Stream& stream, std::unique_ptr<Operation> operation) {
  Node& node = capture.graph->add(std::move(operation), capture.nodes_at(stream));
  capture.frontiers[&stream] = {node.handle<CUgraphNode>()};
}

void forget(Event& event) noexcept {
  event.capture_id = 0;
  event.capture_frontier.clear();
}

/// cuStreamWaitEvent, with the lock held. `done`: nothing is left for the real streams to do.
CUresult wait_in_capture(Stream& stream, Event& event, bool& done) {
  done = true;
  Capture* mine = capture_of(stream);
  Capture* theirs = event.capture_id != 0 ? capture_by_id(event.capture_id) : nullptr;
  if (mine != nullptr && mine->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (theirs == nullptr) {
    done = mine != nullptr;
    // An event that was never recorded has no effect; any other is outside of the capture.
    const bool foreign = mine != nullptr && event.recorded.load(std::memory_order_relaxed) != 0;
    return foreign ? break_off(*mine, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
  }
  if (theirs->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (mine != nullptr && mine != theirs) {
    mine->broken = true;
    return break_off(*theirs, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (stream.legacy) return break_off(*theirs, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  std::vector<CUgraphNode>& frontier = theirs->frontiers[&stream];
  for (CUgraphNode node : event.capture_frontier) {
    if (std::find(frontier.begin(), frontier.end(), node) == frontier.end()) frontier.push_back(node);
  }
  stream.capture.store(theirs, std::memory_order_release);
  return CUDA_SUCCESS;
}

}  // namespace

std::mutex& capture_lock() noexcept {
  static std::mutex& instance = *new std::mutex;
  return instance;
}

int this_thread() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

CUstreamCaptureMode& thread_capture_mode() noexcept {
  thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return t_mode;
}

bool any_capture() noexcept { return g_captures.load(std::memory_order_acquire) != 0; }

std::vector<Node*> Capture::nodes_at(Stream& stream) {
  std::vector<Node*> out;
  for (CUgraphNode handle : frontiers[&stream]) {
    if (Node* node = graph->find(handle)) out.push_back(node);
  }
  return out;
}

Capture& begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into,
                       std::vector<CUgraphNode> after) {
  auto* capture = new Capture;
  capture->id = g_next_id.fetch_add(1);
  capture->mode = mode;
  capture->thread = this_thread();
  capture->origin = &stream;
  if (into == nullptr) capture->made = std::make_unique<Graph>();
  capture->graph = into != nullptr ? into : capture->made.get();
  capture->frontiers.emplace(&stream, std::move(after));
  captures().push_back(capture);
  stream.capture.store(capture, std::memory_order_release);
  g_captures.fetch_add(1, std::memory_order_release);
  return *capture;
}

std::unique_ptr<Graph> finish_capture(Capture& capture) {
  for (const auto& [stream, frontier] : capture.frontiers)
    stream->capture.store(nullptr, std::memory_order_release);
  for (CUevent handle : capture.events) {
    auto* event = object_of<Event>(handle);
    if (event != nullptr && event->capture_id == capture.id) forget(*event);
  }
  std::erase(captures(), &capture);
  g_captures.fetch_sub(1, std::memory_order_release);
  std::unique_ptr<Graph> made = std::move(capture.made);
  delete &capture;
  return made;
}

CUresult enqueue(Stream& stream, Operation& operation) {
  if (any_capture()) {
    const std::lock_guard guard(capture_lock());
    if (const CUresult refused = refuse_implicit(stream); refused != CUDA_SUCCESS) return refused;
    if (Capture* capture = capture_of(stream)) {
      if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      add_node(*capture, stream, operation.clone());
      return CUDA_SUCCESS;
    }
  }
  submit(stream, operation);
  return CUDA_SUCCESS;
}

CUresult enqueue_record(Stream& stream, Event& event, bool external) {
  if (any_capture()) {
    const std::lock_guard guard(capture_lock());
    if (const CUresult refused = refuse_implicit(stream); refused != CUDA_SUCCESS) return refused;
    if (Capture* capture = capture_of(stream)) {
      if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      const auto handle = event.handle<CUevent>();
      if (external) {
        add_node(*capture, stream, std::make_unique<EventOperation>(CU_GRAPH_NODE_TYPE_EVENT_RECORD, handle));
        return CUDA_SUCCESS;
      }
      event.capture_id = capture->id;
      event.capture_frontier = capture->frontiers[&stream];
      capture->events.push_back(handle);
      return CUDA_SUCCESS;
    }
    forget(event);
  } else if (external) {
    return CUDA_ERROR_ILLEGAL_STATE;  // cuEventRecordWithFlags: the flag is for capturing streams
  }
  record_event(stream, event);
  return CUDA_SUCCESS;
}

CUresult enqueue_wait(Stream& stream, Event& event, bool external) {
  if (any_capture()) {
    const std::lock_guard guard(capture_lock());
    Capture* capture = capture_of(stream);
    if (external && capture != nullptr) {
      if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      const auto handle = event.handle<CUevent>();
      add_node(*capture, stream, std::make_unique<EventOperation>(CU_GRAPH_NODE_TYPE_WAIT_EVENT, handle));
      return CUDA_SUCCESS;
    }
    bool done = false;
    if (const CUresult result = wait_in_capture(stream, event, done); result != CUDA_SUCCESS || done)
      return result;
  }
  wait_event(stream, event);
  return CUDA_SUCCESS;
}

CUresult refuse_capturing(Stream& stream) {
  if (!any_capture()) return CUDA_SUCCESS;
  const std::lock_guard guard(capture_lock());
  if (const CUresult refused = refuse_implicit(stream); refused != CUDA_SUCCESS) return refused;
  Capture* capture = capture_of(stream);
  return capture != nullptr ? break_off(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
}

CUresult refuse_captured(const Event& event) {
  if (!any_capture()) return CUDA_SUCCESS;
  const std::lock_guard guard(capture_lock());
  Capture* capture = event.capture_id != 0 ? capture_by_id(event.capture_id) : nullptr;
  return capture != nullptr ? break_off(*capture, CUDA_ERROR_CAPTURED_EVENT) : CUDA_SUCCESS;
}

CUresult refuse_unsafe_call() {
  if (!any_capture() || thread_capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  const bool global = thread_capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL;
  const std::lock_guard guard(capture_lock());
  CUresult result = CUDA_SUCCESS;
  for (Capture* capture : captures()) {
    const bool own = capture->thread == this_thread() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    if (own || (global && capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL)) {
      result = break_off(*capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
  }
  return result;
}

void abandon_capture(Stream& stream) {
  if (!any_capture()) return;
  const std::lock_guard guard(capture_lock());
  Capture* capture = capture_of(stream);
  if (capture == nullptr) return;
  if (capture->origin == &stream) {
    finish_capture(*capture);
    return;
  }
  capture->broken = true;
  capture->frontiers.erase(&stream);
  stream.capture.store(nullptr, std::memory_order_release);
}

}  // namespace kshim::sim

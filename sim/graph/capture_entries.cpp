// SPDX-License-Identifier: Apache-2.0
// cuStream*Capture*, cuThreadExchangeStreamCaptureMode.
#include <algorithm>
#include <set>

#include "context/context.h"
#include "entry/entry.h"
#include "graph/capture.h"
#include "graph/capture_state.h"
#include "launch/stream_host.h"

namespace kshim::sim {
namespace {

CUresult find_stream(CUstream handle, Stream*& out) {
  Context* context = nullptr;
  if (const CUresult ready = require_context(context); ready != CUDA_SUCCESS) return ready;
  out = any_stream(handle);
  return out != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

bool known(CUstreamCaptureMode mode) noexcept { return mode <= CU_STREAM_CAPTURE_MODE_RELAXED; }

CUresult begin(CUstream handle, CUstreamCaptureMode mode, Graph* into, std::vector<CUgraphNode> after) {
  Stream* stream = nullptr;
  if (const CUresult found = find_stream(handle, stream); found != CUDA_SUCCESS) return found;
  if (!known(mode)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard guard(capture_lock());
  if (stream->capture.load() != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  begin_capture(*stream, mode, into, std::move(after));
  return CUDA_SUCCESS;
}

/// Whether everything that the streams of a capture have come to leads to its origin.
bool joined(Capture& capture) {
  std::vector<Node*> open = capture.nodes_at(*capture.origin);
  std::set<const Node*> reached(open.begin(), open.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (Node* before : node->dependencies) {
      if (reached.insert(before).second) open.push_back(before);
    }
  }
  for (const auto& [stream, frontier] : capture.frontiers) {
    const std::vector<Node*> nodes = capture.nodes_at(*stream);
    if (!std::all_of(nodes.begin(), nodes.end(), [&](const Node* node) { return reached.contains(node); }))
      return false;
  }
  return true;
}

struct Info {
  CUstreamCaptureStatus* status;
  cuuint64_t* id;
  CUgraph* graph;
  const CUgraphNode** nodes;
  std::size_t* count;
};

CUresult info(CUstream handle, const Info& out) {
  Stream* stream = nullptr;
  if (const CUresult found = find_stream(handle, stream); found != CUDA_SUCCESS) return found;
  if (out.status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out.status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!any_capture()) return CUDA_SUCCESS;
  const std::lock_guard guard(capture_lock());
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_SUCCESS;
  *out.status = capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (capture->broken) return CUDA_SUCCESS;
  const std::vector<CUgraphNode>& frontier = capture->frontiers[stream];
  if (out.id != nullptr) *out.id = capture->id;
  if (out.graph != nullptr) *out.graph = capture->graph->handle<CUgraph>();
  if (out.nodes != nullptr) *out.nodes = frontier.data();  // valid until the next call on the stream
  if (out.count != nullptr) *out.count = frontier.size();
  return CUDA_SUCCESS;
}

CUresult update(CUstream handle, const CUgraphNode* nodes, std::size_t count, unsigned flags) {
  Stream* stream = nullptr;
  if (const CUresult found = find_stream(handle, stream); found != CUDA_SUCCESS) return found;
  if ((count != 0 && nodes == nullptr) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(capture_lock());
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (std::size_t i = 0; i < count; ++i) {
    if (capture->graph->find(nodes[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<CUgraphNode>& frontier = capture->frontiers[stream];
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) frontier.clear();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::find(frontier.begin(), frontier.end(), nodes[i]) == frontier.end()) frontier.push_back(nodes[i]);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult entry::cuStreamBeginCapture(CUstream stream) {
  return begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr, {});
}

CUresult entry::cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, nullptr, {});
}

CUresult entry::cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* nodes,
                                            const CUgraphEdgeData*, std::size_t count,
                                            CUstreamCaptureMode mode) {
  auto* graph = object_of<Graph>(handle);
  if (graph == nullptr || (count != 0 && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<CUgraphNode> after;
  for (std::size_t i = 0; i < count; ++i) {
    if (graph->find(nodes[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    after.push_back(nodes[i]);
  }
  return begin(stream, mode, graph, std::move(after));
}

CUresult entry::cuStreamEndCapture(CUstream handle, CUgraph* out) {
  Stream* stream = nullptr;
  if (const CUresult found = find_stream(handle, stream); found != CUDA_SUCCESS) return found;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard guard(capture_lock());
  Capture* capture = stream->capture.load();
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) {
    capture->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  *out = nullptr;
  CUresult result = CUDA_SUCCESS;
  if (capture->broken) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!joined(*capture)) {
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  const auto graph = capture->graph->handle<CUgraph>();
  std::unique_ptr<Graph> made = finish_capture(*capture);
  if (result != CUDA_SUCCESS) return result;
  *out = graph;
  [[maybe_unused]] const Graph* programs = made.release();  // the program's from here on
  return CUDA_SUCCESS;
}

CUresult entry::cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return info(stream, {status, nullptr, nullptr, nullptr, nullptr});
}

CUresult entry::cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return info(stream, {status, id, nullptr, nullptr, nullptr});
}

CUresult entry::cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** nodes, std::size_t* count) {
  return info(stream, {status, id, graph, nodes, count});
}

CUresult entry::cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                          CUgraph* graph, const CUgraphNode** nodes,
                                          const CUgraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;  // all edges are plain ones
  return info(stream, {status, id, graph, nodes, count});
}

CUresult entry::cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count,
                                                  unsigned int flags) {
  return update(stream, nodes, count, flags);
}

CUresult entry::cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode* nodes,
                                                     const CUgraphEdgeData*, std::size_t count,
                                                     unsigned int flags) {
  return update(stream, nodes, count, flags);
}

CUresult entry::cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  if (mode == nullptr || !known(*mode)) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, thread_capture_mode());
  return CUDA_SUCCESS;
}

}  // namespace kshim::sim

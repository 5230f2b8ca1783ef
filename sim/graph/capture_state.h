// SPDX-License-Identifier: Apache-2.0
// A capture: its graph and the last nodes of each of its streams.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "graph/graph.h"

namespace kshim::sim {

struct Capture {
  std::uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  int thread = 0;  ///< that began it
  Stream* origin = nullptr;
  bool broken = false;  ///< CU_STREAM_CAPTURE_STATUS_INVALIDATED
  Graph* graph = nullptr;
  std::unique_ptr<Graph>
      made;  ///< null: captured into a graph of the program's (cuStreamBeginCaptureToGraph)
  /// The nodes that the next one of a stream depends on.
  std::map<Stream*, std::vector<CUgraphNode>> frontiers;
  std::vector<CUevent> events;  ///< recorded in it: forgotten at its end

  std::vector<Node*> nodes_at(Stream& stream);
};

/// Guards every capture, Stream::capture's target and the capture fields of events.
std::mutex& capture_lock() noexcept;
int this_thread() noexcept;

// With the lock held:
Capture& begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into, std::vector<CUgraphNode> after);
/// Takes a capture apart; what it made is returned.
std::unique_ptr<Graph> finish_capture(Capture& capture);

/// The calling thread's mode, changed by cuThreadExchangeStreamCaptureMode.
CUstreamCaptureMode& thread_capture_mode() noexcept;

}  // namespace kshim::sim

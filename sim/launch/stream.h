// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work runs at once on the calling thread unless earlier work is pending. Only host
// functions make work pending: they run on the driver's own thread, as documented, because a program may hold
// a lock or wait for the function's effect. Work that is submitted after pending work is queued.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/driver_api.h"
#include "base/handles.h"

namespace kshim::sim {

struct Context;
struct Capture;

// cuCtxGetStreamPriorityRange: what drivers of CUDA 11 and later report (assumed:
// docs/internals/simulator.md).
constexpr int kMinPriority = 0;
constexpr int kGreatestPriority = -5;

/// Work of a stream or of a graph node.
struct Operation {
  virtual ~Operation() = default;
  virtual CUgraphNodeType type() const noexcept = 0;
  virtual void execute() = 0;
  virtual std::unique_ptr<Operation> clone() const = 0;
  /// Host functions, or graphs that hold one: run on the driver's thread.
  virtual bool on_driver_thread() const noexcept { return false; }
};

/// cuStreamSetAttribute: kept and given back, without effect. The first is -1 until it is set, which no value
/// of its enumeration is: an RTX 3060's answer.
struct StreamAttributes {
  int policy = -1;
  CUaccessPolicyWindow window{};
  CUlaunchMemSyncDomainMap domain_map{0, 1};
  CUlaunchMemSyncDomain domain = CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
};

struct Stream : Handled<Kind::stream> {
  Stream(Context& of, unsigned stream_flags, int stream_priority, bool is_legacy);
  ~Stream() = default;

  Context& context;
  const unsigned flags;
  const int priority;
  const bool legacy;
  const std::uint64_t id;
  StreamAttributes attributes;  ///< guarded by the context's lock
  std::atomic<std::uint64_t> submitted{
      0};  ///< operations accepted, guarded by the engine's lock while any pends
  std::atomic<std::uint64_t> finished{0};
  std::atomic<Capture*> capture{nullptr};  ///< not null: operations become graph nodes
  bool blocking() const noexcept { return !legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }
};

struct Event : Handled<Kind::event> {
  Event(Context& of, unsigned event_flags);
  Context& context;
  const unsigned flags;
  using Clock = std::chrono::steady_clock;
  std::atomic<std::int64_t> time_ns{0};       ///< of the last completed record
  std::atomic<std::uint64_t> recorded{0};     ///< records submitted
  std::atomic<std::uint64_t> completed{0};    ///< the newest record that is done
  std::uint64_t capture_id = 0;               ///< recorded in a capture: guarded by the capture lock
  std::vector<CUgraphNode> capture_frontier;  ///< what the recording stream had come to
};

/// Runs or queues; never for a capturing stream: entry points call enqueue() of graph/capture.h.
void submit(Stream& stream, Operation& operation);
void record_event(Stream& stream, Event& event);
void wait_event(Stream& stream, Event& event);
bool is_idle(const Stream& stream) noexcept;
bool is_complete(const Event& event) noexcept;
void wait_for(const Stream& stream);
void wait_for(const Event& event);
/// All streams of a context.
void drain_context(Context& context);
/// All of the process's work.
void drain_all();

Stream& make_stream(Context& context, unsigned flags, int priority);
/// Both return at once; work in the stream, and waits for the event, continue (CUDA Driver API,
/// cuStreamDestroy).
void end_stream(Stream& stream);
void end_event(Event& event);
/// All streams that a program made in this context (its end or reset).
void end_streams(Context& context);

}  // namespace kshim::sim

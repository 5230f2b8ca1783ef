// SPDX-License-Identifier: Apache-2.0
#include "launch/stream.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <thread>

#include "context/context.h"

namespace kshim::sim {
namespace {

std::atomic<std::uint64_t> g_next_stream_id{1};

/// One queued operation: `wait_*` must have come to pass before it runs.
struct Task {
  Stream* stream;
  std::uint64_t ticket;  ///< its number in the stream
  std::vector<std::pair<const Stream*, std::uint64_t>> after_streams;
  const Event* after_event = nullptr;
  std::uint64_t after_record = 0;
  std::unique_ptr<Operation> operation;  ///< null: only waits or records
  Event* records = nullptr;
  std::uint64_t record = 0;
};

struct Engine {
  std::mutex lock;
  std::condition_variable changed;
  std::deque<Task> tasks;
  std::atomic<std::size_t> pending{0};  ///< tasks queued or running; 0 on the fast path of every operation
  bool running = false;
  std::vector<Stream*> dead_streams;  ///< destroyed while something pended: tasks may refer to them
  std::vector<Event*> dead_events;
};
Engine& engine() noexcept {
  static Engine& instance = *new Engine;
  return instance;
}

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Event::Clock::now().time_since_epoch()).count();
}

void complete(Event& event, std::uint64_t record) noexcept {
  event.time_ns.store(now_ns(), std::memory_order_relaxed);
  event.completed.store(record, std::memory_order_release);
}

bool ready(const Task& task) noexcept {
  if (task.stream->finished.load(std::memory_order_acquire) + 1 != task.ticket) return false;
  for (const auto& [stream, ticket] : task.after_streams) {
    if (stream->finished.load(std::memory_order_acquire) < ticket) return false;
  }
  return task.after_event == nullptr ||
         task.after_event->completed.load(std::memory_order_acquire) >= task.after_record;
}

bool nothing_pends() noexcept { return engine().pending.load(std::memory_order_acquire) == 0; }

/// With the lock held and no task left.
void bury(Engine& e) noexcept {
  for (const Stream* stream : e.dead_streams) delete stream;
  for (const Event* event : e.dead_events) delete event;
  e.dead_streams.clear();
  e.dead_events.clear();
}

bool calls_program(const Task& task) noexcept {
  return task.operation != nullptr && task.operation->on_driver_thread();
}

/// One thread for host functions, one for the rest: a host function that blocks delays its own stream only.
void work(Engine& e, bool host_functions) {
  std::unique_lock guard(e.lock);
  for (;;) {
    auto next = e.tasks.begin();
    while (next != e.tasks.end() && (calls_program(*next) != host_functions || !ready(*next))) ++next;
    if (next == e.tasks.end()) {
      e.changed.wait(guard);
      continue;
    }
    Task task = std::move(*next);
    e.tasks.erase(next);
    guard.unlock();
    if (task.operation != nullptr) task.operation->execute();
    if (task.records != nullptr) complete(*task.records, task.record);
    guard.lock();
    task.stream->finished.store(task.ticket, std::memory_order_release);
    e.pending.fetch_sub(1, std::memory_order_release);
    if (nothing_pends()) bury(e);
    e.changed.notify_all();
  }
}

/// With the engine's lock held. The legacy stream waits for all blocking streams of its context and they for
/// it (Programming Guide, "Default Stream").
void order_after_others(Task& task) {
  Context& context = task.stream->context;
  const auto after = [&](const Stream* other) {
    const std::uint64_t ticket = other->submitted.load(std::memory_order_relaxed);
    if (other != task.stream && other->finished.load(std::memory_order_relaxed) < ticket) {
      task.after_streams.emplace_back(other, ticket);
    }
  };
  const std::lock_guard guard(context.lock);
  if (task.stream->legacy) {
    for (const Stream* other : context.streams) {
      if (other->blocking()) after(other);
    }
    for (const auto& [thread, other] : context.thread_streams) after(other);
  } else if (task.stream->blocking()) {
    if (const Stream* legacy = context.legacy.load()) after(legacy);
  }
}

void queue(Task task) {
  Engine& e = engine();
  const std::lock_guard guard(e.lock);
  task.ticket = task.stream->submitted.fetch_add(1, std::memory_order_relaxed) + 1;
  order_after_others(task);
  e.tasks.push_back(std::move(task));
  e.pending.fetch_add(1, std::memory_order_release);
  if (!e.running) {
    e.running = true;
    std::thread([&e] { work(e, true); }).detach();
    std::thread([&e] { work(e, false); }).detach();
  }
  e.changed.notify_all();
}

template <class Condition>
void wait_until(Condition condition) {
  if (condition()) return;
  Engine& e = engine();
  std::unique_lock guard(e.lock);
  e.changed.wait(guard, condition);
}

bool idle(const Stream& stream) noexcept {
  return stream.finished.load(std::memory_order_acquire) >= stream.submitted.load(std::memory_order_acquire);
}

bool all_idle(Context& context) noexcept {
  const std::lock_guard guard(context.lock);
  for (const Stream* stream : context.streams) {
    if (!idle(*stream)) return false;
  }
  for (const auto& [thread, stream] : context.thread_streams) {
    if (!idle(*stream)) return false;
  }
  const Stream* legacy = context.legacy.load();
  return legacy == nullptr || idle(*legacy);
}

}  // namespace

Stream::Stream(Context& of, unsigned stream_flags, int stream_priority, bool is_legacy)
    : context(of),
      flags(stream_flags),
      priority(stream_priority),
      legacy(is_legacy),
      id(g_next_stream_id.fetch_add(1)) {
  publish(this);
}

Event::Event(Context& of, unsigned event_flags) : context(of), flags(event_flags) { publish(this); }

void submit(Stream& stream, Operation& operation) {
  if (nothing_pends() && !operation.on_driver_thread()) return operation.execute();
  queue(Task{&stream, 0, {}, nullptr, 0, operation.clone(), nullptr, 0});
}

void record_event(Stream& stream, Event& event) {
  const std::uint64_t record = event.recorded.fetch_add(1, std::memory_order_relaxed) + 1;
  if (nothing_pends()) return complete(event, record);
  queue(Task{&stream, 0, {}, nullptr, 0, nullptr, &event, record});
}

void wait_event(Stream& stream, Event& event) {
  if (is_complete(event)) return;
  queue(Task{&stream, 0, {}, &event, event.recorded.load(std::memory_order_relaxed), nullptr, nullptr, 0});
}

bool is_idle(const Stream& stream) noexcept {
  if (nothing_pends()) return true;
  if (!stream.legacy) return idle(stream);
  return all_idle(stream.context);
}

bool is_complete(const Event& event) noexcept {
  return event.completed.load(std::memory_order_acquire) >= event.recorded.load(std::memory_order_relaxed);
}

void wait_for(const Stream& stream) {
  wait_until([&] { return is_idle(stream); });
}

void wait_for(const Event& event) {
  wait_until([&] { return is_complete(event); });
}

void drain_context(Context& context) {
  wait_until([&] { return nothing_pends() || all_idle(context); });
}

void drain_all() {
  wait_until([] { return nothing_pends(); });
}

Stream& make_stream(Context& context, unsigned flags, int priority) {
  auto* stream = new Stream(context, flags, priority, false);
  const std::lock_guard guard(context.lock);
  context.streams.insert(stream);
  return *stream;
}

void end_stream(Stream& stream) {
  stream.retire();
  {
    const std::lock_guard guard(stream.context.lock);
    stream.context.streams.erase(&stream);
  }
  Engine& e = engine();
  const std::lock_guard guard(e.lock);
  e.dead_streams.push_back(&stream);
  if (nothing_pends()) bury(e);
}

void end_event(Event& event) {
  event.retire();
  Engine& e = engine();
  const std::lock_guard guard(e.lock);
  e.dead_events.push_back(&event);
  if (nothing_pends()) bury(e);
}

void end_streams(Context& context) {
  for (;;) {
    Stream* stream = nullptr;
    {
      const std::lock_guard guard(context.lock);
      if (context.streams.empty()) break;
      stream = *context.streams.begin();
    }
    end_stream(*stream);
  }
}

Stream* Context::stream(CUstream wanted) noexcept {
  if (wanted == nullptr || wanted == CU_STREAM_LEGACY) {
    Stream* found = legacy.load(std::memory_order_acquire);
    if (found != nullptr) return found;
    const std::lock_guard guard(lock);
    found = legacy.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = new Stream(*this, 0, 0, true);
      legacy.store(found, std::memory_order_release);
    }
    return found;
  }
  if (wanted == CU_STREAM_PER_THREAD) {
    // One look-up for the thread's newest context; the map serves threads that change contexts.
    thread_local struct {
      std::uint64_t context_id;
      Stream* stream;
    } t_last{};
    if (t_last.context_id == id) return t_last.stream;
    const std::lock_guard guard(lock);
    Stream*& slot = thread_streams[static_cast<int>(::syscall(SYS_gettid))];
    if (slot == nullptr) slot = new Stream(*this, 0, 0, false);
    t_last = {id, slot};
    return slot;
  }
  Stream* found = object_of<Stream>(wanted);
  return found != nullptr && &found->context == this ? found : nullptr;
}

}  // namespace kshim::sim

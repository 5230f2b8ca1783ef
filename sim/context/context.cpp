// SPDX-License-Identifier: Apache-2.0
#include "context/context.h"

#include <pthread.h>

#include "launch/stream.h"
#include "memory/allocations.h"
#include "modules/module.h"

namespace kshim::sim {
namespace {

std::atomic<std::uint64_t> g_next_context_id{1};

enum class State : int { fresh, ready, child_of_ready };
std::atomic<State> g_state{State::fresh};

void in_child() noexcept {
  if (g_state.load() == State::ready) g_state.store(State::child_of_ready);
}

// Plain data without destructor: libraries call the driver from exit handlers that run after thread_local
// destructors.
constexpr unsigned kInlineDepth = 16;
struct ContextStack {
  Context* inline_slots[kInlineDepth];
  std::vector<Context*>* more;  ///< deeper than kInlineDepth
  unsigned depth;
};
thread_local ContextStack t_stack{};

}  // namespace

Context::Context(const Device& on, bool is_primary, unsigned create_flags)
    : device(on), primary(is_primary), id(g_next_context_id.fetch_add(1)), flags(create_flags) {
  reset_limits();
  publish(this);
}

Context::~Context() { empty_context(*this); }

void Context::reset_limits() noexcept {
  for (auto& limit : limits) limit.store(0, std::memory_order_relaxed);
  // Defaults as the programming guide and the toolkit's documentation of cuCtxSetLimit give them.
  limits[CU_LIMIT_STACK_SIZE].store(1024, std::memory_order_relaxed);
  limits[CU_LIMIT_PRINTF_FIFO_SIZE].store(1 << 20, std::memory_order_relaxed);
  limits[CU_LIMIT_MALLOC_HEAP_SIZE].store(8 << 20, std::memory_order_relaxed);
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH].store(2, std::memory_order_relaxed);
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT].store(2048, std::memory_order_relaxed);
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY].store(64, std::memory_order_relaxed);
}

CUresult check_initialized() noexcept {
  return g_state.load(std::memory_order_acquire) == State::ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult initialize() noexcept {
  static std::mutex& lock = *new std::mutex;
  const std::lock_guard guard(lock);
  switch (g_state.load()) {
    case State::ready:
      return CUDA_SUCCESS;
    case State::child_of_ready:
      return CUDA_ERROR_NOT_INITIALIZED;
    case State::fresh:
      break;
  }
  if (devices().empty()) return CUDA_ERROR_NO_DEVICE;
  ::pthread_atfork(nullptr, nullptr, in_child);
  g_state.store(State::ready, std::memory_order_release);
  return CUDA_SUCCESS;
}

Context* current_context() noexcept {
  const ContextStack& stack = t_stack;
  if (stack.depth == 0) return nullptr;
  return stack.depth <= kInlineDepth ? stack.inline_slots[stack.depth - 1] : stack.more->back();
}

void push_current(Context* context) {
  ContextStack& stack = t_stack;
  if (stack.depth < kInlineDepth) {
    stack.inline_slots[stack.depth] = context;
  } else {
    if (stack.more == nullptr) stack.more = new std::vector<Context*>;
    stack.more->push_back(context);
  }
  ++stack.depth;
}

bool pop_current(Context*& context) noexcept {
  context = current_context();
  ContextStack& stack = t_stack;
  if (stack.depth == 0) return false;
  if (stack.depth > kInlineDepth) stack.more->pop_back();
  --stack.depth;
  return true;
}

void set_current(Context* context) {
  Context* previous = nullptr;
  pop_current(previous);
  if (context != nullptr) push_current(context);
}

void drop_current(const Context* context) noexcept {
  Context* popped = nullptr;
  if (current_context() == context) pop_current(popped);
}

CUresult require_context(Context*& context) noexcept {
  if (const CUresult ready = check_initialized(); ready != CUDA_SUCCESS) return ready;
  context = current_context();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return fault_in(*context);
}

Context& primary_context(const Device& device) noexcept {
  static std::vector<Context*>& list = *[] {
    auto* made = new std::vector<Context*>;
    for (const Device& each : devices()) made->push_back(new Context(each, true, 0));
    return made;
  }();
  return *list[static_cast<std::size_t>(device.ordinal)];
}

void empty_context(Context& context) noexcept {
  drain_all();  // of streams that were destroyed with work in them, too
  unload_modules(context);
  end_streams(context);
  context.storage.clear(context.handle<CUcontext>());
  free_allocations(context);
  const std::lock_guard guard(context.lock);
  context.peers.clear();
  context.reset_limits();
}

}  // namespace kshim::sim

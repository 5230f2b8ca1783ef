// SPDX-License-Identifier: Apache-2.0
#include "core/state.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "guest/syscalls.h"
#include "guest/timed_lock.h"

namespace kshim::shim {
namespace {

TimedLock g_lock;
std::atomic<State*> g_state{nullptr};  // set under g_lock

/// nullptr where the system gives no memory (RLIMIT_AS, mlockall, overcommit).
State* map_state() noexcept {
  void* const memory = raw::map_memory(sizeof(State), MAP_NORESERVE);
  if (memory == nullptr) return nullptr;
  auto* const state = static_cast<State*>(memory);
  state->stack.prepare();
  raw::advise(&state->stack, sizeof state->stack, MADV_DODUMP);  // for a debugger
  return state;
}

/// A thread of the parent may have been changing the state during fork, so its contents are not usable.
void forget(State& state) noexcept {
  // Leaves untouched pages untouched. Fails for locked memory.
  if (raw::advise(&state, sizeof state, MADV_DONTNEED) == 0) return;
  auto* const known = reinterpret_cast<std::byte*>(&state) + sizeof state.stack;
  std::memset(known, 0, sizeof state - sizeof state.stack);
}

}  // namespace

bool is_state_mapped() noexcept { return g_state.load(std::memory_order_acquire) != nullptr; }

bool SlowPath::enter(bool wait, FunctionRef<void(State&)> work) noexcept {
  bool inherited = false;
  if (!(wait ? g_lock.acquire(inherited) : g_lock.try_acquire(inherited))) return false;
  State* state = g_state.load(std::memory_order_relaxed);
  if (state == nullptr) {
    state = map_state();
    g_state.store(state, std::memory_order_release);
  } else if (inherited) {
    forget(*state);
  }
  if (state != nullptr) {
    state->stack.call([&] {
      work(*state);
      state->report.flush();
    });
  }
  g_lock.release();
  return state != nullptr;
}

}  // namespace kshim::shim

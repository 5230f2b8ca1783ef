// SPDX-License-Identifier: Apache-2.0
// Contexts: one primary context a device, with one address forever, and those a program creates. The current
// context is the top of a stack that each thread has.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/driver_api.h"
#include "base/handles.h"
#include "context/storage.h"
#include "device/product.h"

namespace kshim::sim {

struct Stream;
struct Module;

struct Context : Handled<Kind::context> {
  Context(const Device& on, bool is_primary, unsigned create_flags);
  ~Context();

  const Device& device;
  const bool primary;
  const std::uint64_t id;
  /// Primary: retained at least once. Created: not destroyed.
  std::atomic<bool> alive{false};
  std::atomic<unsigned> flags;
  /// The error of a kernel's fault (KSHIM_SIM_FAULT), which every later call returns; 0: none.
  std::atomic<int> fault{0};
  /// Primary: held through a retain, a release and a reset, so that a thread that retains it while it is
  /// destroyed waits and then gets a live context. Recursive, because what the end
  /// calls (destructors of context-local storage) may ask again.
  std::recursive_mutex turn;
  int retained = 0;              ///< guarded by turn
  std::atomic<int> attached{1};  ///< cuCtxAttach less cuCtxDetach, and the maker
  LocalStorage storage;
  std::atomic<std::size_t> limits[CU_LIMIT_MAX];
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<CUsharedconfig> shared_config{CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE};

  std::mutex lock;
  std::set<const Context*> peers;  ///< guarded by lock
  std::vector<Module*> modules;    ///< guarded by lock: unloaded with the context

  /// The stream behind a handle: 0 and 1 are the legacy stream, 2 the calling thread's own. Null for a
  /// foreign handle.
  Stream* stream(CUstream handle) noexcept;
  std::atomic<Stream*> legacy{nullptr};
  std::map<int, Stream*> thread_streams;  ///< by thread id, guarded by lock
  std::set<Stream*> streams;              ///< those the program made, guarded by lock

  void reset_limits() noexcept;
};

/// CUDA_ERROR_NOT_INITIALIZED before cuInit, and in the child of a process that had called it.
CUresult check_initialized() noexcept;
CUresult initialize() noexcept;

/// The calling thread's stack.
Context* current_context() noexcept;
void push_current(Context* context);
bool pop_current(Context*& context) noexcept;
void set_current(Context* context);
/// Pops a context off the calling thread's stack if it is on top (cuCtxDestroy).
void drop_current(const Context* context) noexcept;

/// The error of a kernel's fault (KSHIM_SIM_FAULT); CUDA_SUCCESS if there was none.
inline CUresult fault_in(const Context& context) noexcept {
  return static_cast<CUresult>(context.fault.load(std::memory_order_relaxed));
}
/// The current context, fit for work: 3, 201 or 709 otherwise.
CUresult require_context(Context*& context) noexcept;

Context& primary_context(const Device& device) noexcept;
/// Ends everything a context owns: modules, streams, memory, storage.
void empty_context(Context& context) noexcept;

}  // namespace kshim::sim

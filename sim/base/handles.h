// SPDX-License-Identifier: Apache-2.0
// Handles that can be validated without reading through them. A handle is the address of a cell in one
// reserved range; any other pointer that a caller passes (the runtime may pass addresses of host code) is
// recognized by its address and never dereferenced. Look-up takes no lock, because it is on the launch path.
#pragma once
#include <atomic>
#include <cstdint>

namespace kshim::sim {

enum class Kind : std::uint32_t {
  none,
  context,
  stream,
  event,
  module,
  library,
  kernel,
  function,
  graph,
  graph_node,
  graph_exec,
  mem_pool,
  mem_handle,
  array,
  mipmapped_array,
  texture,
  surface,
  linker,
  user_object,
  async_notification,
  log_callback,
};

struct Cell {
  std::atomic<Kind> kind;
  std::uint32_t next_free;  ///< guarded by the allocator's lock while kind is none
  std::atomic<void*> object;
};

/// A new cell that names `object`. Null when the range is used up.
void* new_handle(Kind kind, void* object) noexcept;
/// Ends a handle. Its address may be reused, as in a driver.
void end_handle(void* handle) noexcept;
const Cell* cell_of(const void* handle) noexcept;

/// The object behind a handle of kind T::kKind, or null for anything else.
template <class T>
T* object_of(const void* handle) noexcept {
  const Cell* cell = cell_of(handle);
  if (cell == nullptr || cell->kind.load(std::memory_order_acquire) != T::kKind) return nullptr;
  return static_cast<T*>(cell->object.load(std::memory_order_relaxed));
}

/// Base of everything that has a handle. The handle ends with the object.
template <Kind kind>
class Handled {
 public:
  static constexpr Kind kKind = kind;
  Handled(const Handled&) = delete;
  Handled& operator=(const Handled&) = delete;
  template <class H>
  H handle() const noexcept {
    return reinterpret_cast<H>(handle_);
  }
  /// Ends the handle before the object, for objects that other threads may still hold.
  void retire() noexcept {
    if (handle_ != nullptr) end_handle(handle_);
    handle_ = nullptr;
  }

 protected:
  /// The derived constructor calls publish() last, when other threads may see the object.
  Handled() = default;
  ~Handled() { retire(); }
  template <class T>
  void publish(T* self) noexcept {
    handle_ = new_handle(kind, self);
  }

 private:
  void* handle_ = nullptr;
};

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// cuUserObject*: an object of the program that graphs keep alive. Every graph, clone and instantiated graph
// holds its references until it ends; the last one to go calls the destructor.
#pragma once
#include <atomic>
#include <map>

#include "base/driver_api.h"
#include "base/handles.h"

namespace kshim::sim {

struct UserObject : Handled<Kind::user_object> {
  UserObject(void* pointer, CUhostFn destructor, unsigned count)
      : what(pointer), destroy(destructor), references(count) {
    publish(this);
  }
  void* const what;
  const CUhostFn destroy;
  std::atomic<std::uint64_t> references;
  void retain(unsigned count) noexcept { references.fetch_add(count, std::memory_order_relaxed); }
  /// Drops references, and may destroy the object. False if there are fewer references.
  static bool release(UserObject& object, unsigned count) noexcept;
};

/// The references one graph holds.
class UserObjects {
 public:
  UserObjects() = default;
  UserObjects(const UserObjects& other);
  UserObjects& operator=(const UserObjects&) = delete;
  ~UserObjects();
  /// Takes over references that the caller has.
  void adopt(UserObject& object, unsigned count) { held_[&object] += count; }
  bool release(UserObject& object, unsigned count) noexcept;

 private:
  std::map<UserObject*, unsigned> held_;
};

}  // namespace kshim::sim

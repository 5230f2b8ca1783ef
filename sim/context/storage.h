// SPDX-License-Identifier: Apache-2.0
// Context-local storage: where each runtime instance keeps its state for a context. get() runs once in nearly
// every runtime call and in every launch, so it takes no lock: keys are never removed, values are.
#pragma once
#include <atomic>
#include <mutex>

namespace kshim::sim {

class LocalStorage {
 public:
  /// `context` is the handle, as the runtime will be told when the value ends.
  using Destructor = void (*)(void* context, void* key, void* value);
  LocalStorage() = default;
  LocalStorage(const LocalStorage&) = delete;
  LocalStorage& operator=(const LocalStorage&) = delete;
  ~LocalStorage();

  bool get(const void* key, void*& value) const noexcept;
  void put(void* key, void* value, Destructor destructor);
  bool remove(const void* key) noexcept;
  /// Ends every value, calling destructors outside the lock.
  void clear(void* context) noexcept;

 private:
  struct Entry {
    std::atomic<void*> key{nullptr};
    std::atomic<void*> value{nullptr};
    std::atomic<bool> present{false};
    Destructor destructor = nullptr;  ///< guarded by lock_
    std::atomic<Entry*> next{nullptr};
  };
  Entry* find(const void* key) const noexcept;

  std::mutex lock_;
  std::atomic<Entry*> head_{nullptr};
};

}  // namespace kshim::sim

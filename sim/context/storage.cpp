// SPDX-License-Identifier: Apache-2.0
#include "context/storage.h"

namespace kshim::sim {

LocalStorage::~LocalStorage() {
  for (Entry* entry = head_.load(); entry != nullptr;) {
    Entry* next = entry->next.load();
    delete entry;
    entry = next;
  }
}

LocalStorage::Entry* LocalStorage::find(const void* key) const noexcept {
  Entry* entry = head_.load(std::memory_order_acquire);
  while (entry != nullptr && entry->key.load(std::memory_order_relaxed) != key) {
    entry = entry->next.load(std::memory_order_relaxed);
  }
  return entry;
}

bool LocalStorage::get(const void* key, void*& value) const noexcept {
  const Entry* entry = find(key);
  if (entry == nullptr || !entry->present.load(std::memory_order_acquire)) return false;
  value = entry->value.load(std::memory_order_relaxed);
  return true;
}

void LocalStorage::put(void* key, void* value, Destructor destructor) {
  const std::lock_guard guard(lock_);
  Entry* entry = find(key);
  const bool fresh = entry == nullptr;
  if (fresh) {
    entry = new Entry;
    entry->key.store(key, std::memory_order_relaxed);
  }
  entry->value.store(value, std::memory_order_relaxed);
  entry->destructor = destructor;
  entry->present.store(true, std::memory_order_release);
  if (fresh) {
    entry->next.store(head_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    head_.store(entry, std::memory_order_release);
  }
}

bool LocalStorage::remove(const void* key) noexcept {
  const std::lock_guard guard(lock_);
  Entry* entry = find(key);
  return entry != nullptr && entry->present.exchange(false, std::memory_order_acq_rel);
}

void LocalStorage::clear(void* context) noexcept {
  for (Entry* entry = head_.load(std::memory_order_acquire); entry != nullptr;
       entry = entry->next.load(std::memory_order_relaxed)) {
    Destructor destructor = nullptr;
    void* value = nullptr;
    {
      const std::lock_guard guard(lock_);
      if (!entry->present.exchange(false, std::memory_order_acq_rel)) continue;
      destructor = entry->destructor;
      value = entry->value.load(std::memory_order_relaxed);
    }
    if (destructor != nullptr) destructor(context, entry->key.load(std::memory_order_relaxed), value);
  }
}

}  // namespace kshim::sim

// SPDX-License-Identifier: Apache-2.0
// How much of what is inflated may lie in memory at once, over all threads.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kshim::scan {

/// Memory that threads share. One that needs more than is left waits, but for one of them, which gets all it
/// asks for: so some thread always goes on, however large its member is. At most `bytes` are held, and what
/// that one thread holds.
class MemoryPool {
 public:
  explicit MemoryPool(std::uint64_t bytes) : left_(bytes) {}

 private:
  friend class MemoryLease;
  std::mutex lock_;
  std::condition_variable changed_;
  std::uint64_t left_;     // guarded by lock_
  bool exceeded_ = false;  // guarded by lock_: one holds more than there is
};

/// What one thread holds, for a container and all that lies in it. It belongs to that thread.
class MemoryLease {
 public:
  /// Without a pool nothing is counted.
  explicit MemoryLease(MemoryPool* pool) : pool_(pool) {}
  MemoryLease(const MemoryLease&) = delete;
  MemoryLease& operator=(const MemoryLease&) = delete;
  ~MemoryLease() { lower(held_); }
  /// May wait for other threads.
  void raise(std::uint64_t bytes);
  void lower(std::uint64_t bytes);

 private:
  MemoryPool* pool_;
  std::uint64_t held_ = 0;
  bool exceeds_ = false;  // then nothing of held_ is the pool's
};

}  // namespace kshim::scan

// SPDX-License-Identifier: Apache-2.0
// A lock with a timeout.
#pragma once
#include <atomic>
#include <cstdint>

namespace kshim::shim {

/// A lock that gives up after a while, so the host never deadlocks. It stores the process and the thread that
/// own it:
/// - a fork's child takes over a lock that another thread of the parent owned;
/// - acquire() fails at once if this thread already owns the lock;
/// - acquire() fails after 2 s in which nobody released the lock. From then on no thread waits until the lock
/// is
///   released.
/// Time in which the whole process was stopped (SIGSTOP, a debugger, a suspended machine) does not count. Not
/// for the launch path. A caller that does not get the lock drops the record and counts it.
class TimedLock {
 public:
  bool acquire() noexcept {
    bool inherited = false;
    return acquire(inherited);
  }
  /// `inherited`: the lock was owned by a thread of the parent process, the data that the lock protects may
  /// be half updated.
  bool acquire(bool& inherited) noexcept;
  /// Does not wait.
  bool try_acquire(bool& inherited) noexcept;
  void release() noexcept;

 private:
  bool wait_and_acquire(bool& inherited) noexcept;

  std::atomic<std::uint64_t> owner_{0};     ///< thread_token()
  std::atomic<std::uint32_t> releases_{0};  ///< the word that waiting threads sleep on
  std::atomic<std::uint32_t> waiting_{0};   ///< in a fork's child, the parent's count
  std::atomic<bool> abandoned_{false};      ///< a thread has waited without success
};

class LockGuard {
 public:
  explicit LockGuard(TimedLock& lock) noexcept : lock_(lock), held_(lock.acquire()) {}
  ~LockGuard() {
    if (held_) lock_.release();
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  TimedLock& lock_;
  bool held_;
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// A lock and a wait that end.
#pragma once
#include <atomic>
#include <cstdint>

namespace kshim::shim {

/// A lock that gives up after a while, so the host never deadlocks. It stores the process and the thread that
/// own it:
/// - a fork's child takes over a lock that another thread of the parent owned;
/// - acquire() fails at once if this thread already owns the lock;
/// - once a thread has waited in vain, nobody waits again until the lock is released.
/// Not for the launch path. Callers that do not get it drop the record and count it.
class PatientLock {
 public:
  bool acquire() noexcept {
    bool inherited = false;
    return acquire(inherited);
  }
  /// `inherited`: the lock was owned by a thread of the parent process, which may have left what it guards
  /// half changed.
  bool acquire(bool& inherited) noexcept;
  /// Does not wait.
  bool try_acquire(bool& inherited) noexcept;
  void release() noexcept {
    abandoned_.store(false, std::memory_order_relaxed);
    owner_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<std::uint64_t> owner_{0};  ///< thread_mark()
  std::atomic<bool> abandoned_{false};   ///< a thread has waited in vain
};

class LockGuard {
 public:
  explicit LockGuard(PatientLock& lock) noexcept : lock_(lock), held_(lock.acquire()) {}
  ~LockGuard() {
    if (held_) lock_.release();
  }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  PatientLock& lock_;
  bool held_;
};

/// A wait that ends after 2 s in which this thread could run. Time in which the whole process was stopped
/// (SIGSTOP, a debugger, a suspended machine) does not count: each turn counts for a few milliseconds at
/// most.
class Patience {
 public:
  Patience() noexcept;
  /// Lets other threads run; false once it has been long enough.
  bool wait() noexcept;

 private:
  std::uint64_t last_;
  std::uint64_t waited_ = 0;
  std::uint32_t turns_ = 0;
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// A lock and a wait that end.
#pragma once
#include <atomic>
#include <cstdint>

namespace kshim::shim {

/// A lock that gives up: never deadlocks the host, whatever a signal handler interrupted. It knows the
/// process that holds it, so that a fork's child takes over what another thread of the parent held, and the
/// thread: who finds that he holds it himself was interrupted, or jumped out, and does not wait for it. Not
/// for the launch path. Who does not get it drops its record and counts it.
class PatientLock {
 public:
  bool acquire() noexcept;
  void release() noexcept {
    stuck_.store(false, std::memory_order_relaxed);
    holder_.store(0, std::memory_order_release);
  }

 private:
  bool attempt(std::uint64_t mark) noexcept;
  std::atomic<std::uint64_t> holder_{0};  ///< thread_mark()
  /// Somebody waited in vain: until it is released nobody else does. A host's signal handler may have jumped
  /// out of the shim (siglongjmp), and then the holder never comes back.
  std::atomic<bool> stuck_{false};
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

/// Waiting that ends, after 0.2 s by the kernel's own clock: a library that stands in for clock_gettime
/// (libfaketime) can let time stand still. Where a sandbox refuses that call, after so many turns.
class Patience {
 public:
  Patience() noexcept;
  /// Lets others run; false once it has been long enough.
  bool wait() noexcept;

 private:
  std::uint64_t start_;
  std::uint64_t blind_start_ = 0;
  std::uint32_t turns_ = 0;
};

}  // namespace kshim::shim

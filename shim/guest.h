// SPDX-License-Identifier: Apache-2.0
// Manners for code in someone else's process: errno is given back, waiting has an end, memory comes from mmap
// and is never returned, foreign memory is read so that a bad pointer costs an error code and not the
// process.
#pragma once
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::shim {

class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

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

/// Copies text into memory that lives as long as the process; empty when there is no more. Lock-free.
std::string_view keep_text(std::string_view text) noexcept;

/// Reads foreign memory; false where it cannot be read.
bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept;
/// How many of `size` bytes from `address` can be read, to the page.
std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept;

/// The zero-terminated text at `from`, where it is; empty unless all of it can be read.
std::string_view readable_text(const char* from) noexcept;

std::uint64_t now_nanoseconds() noexcept;  ///< CLOCK_MONOTONIC
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
std::uint32_t thread_id() noexcept;
/// Without a system call after the first; right in a fork's child. A vfork's child, which shares our memory
/// until it execs, passes for its parent: where that matters, ask getpid().
std::uint32_t process_id() noexcept;
/// The same for telling processes apart: also a child from a parent whose number it has, in a pid namespace
/// of its own.
std::uint32_t process_mark() noexcept;

/// Process and thread; no two of a process that live at the same time have the same. Not 0, no system call.
std::uint64_t thread_mark() noexcept;
/// Whether a mark was set by this process: what a fork's child finds may be of a thread that it does not
/// have.
inline bool is_of_this_process(std::uint64_t mark) noexcept { return mark >> 32U == process_mark(); }

/// Text assembled in place; what does not fit is cut.
template <std::size_t kSize>
class Text {
 public:
  Text() = default;
  Text& operator<<(std::string_view part) noexcept {
    for (const char character : part)
      if (size_ < kSize) text_[size_++] = character;
    return *this;
  }
  Text& operator<<(std::uint64_t value) noexcept {
    char digits[20];
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (count != 0) put(digits[--count]);
    return *this;
  }
  void put(char character) noexcept {
    if (size_ < kSize) text_[size_++] = character;
  }
  void shrink(std::size_t size) noexcept { size_ = size < size_ ? size : size_; }
  std::string_view view() const noexcept { return {text_, size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kSize; }
  const char* c_str() noexcept {
    text_[size_] = 0;
    return text_;
  }

 private:
  char text_[kSize + 1] = {};
  std::size_t size_ = 0;
};

using PathText = Text<4096>;

/// Lower-case hex of at most 20 bytes (a GNU build id).
Text<40> to_hex(Bytes bytes) noexcept;
std::string_view base_name(std::string_view path) noexcept;

}  // namespace kshim::shim

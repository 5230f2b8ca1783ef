// SPDX-License-Identifier: Apache-2.0
#include "guest/process_generation.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "guest/errno_keeper.h"
#include "guest/reentry_guard.h"
#include "guest/syscalls.h"

namespace kshim::shim {

constinit thread_local bool t_inside = false;

namespace {

/// A page that reads as zero in a child of fork (Linux 4.14); null if the kernel does not support that.
std::atomic<std::uint32_t>* wiped_on_fork() noexcept {
  constexpr std::size_t kPage = 4096;
  void* page = raw::map_memory(kPage);
  if (page == nullptr) return nullptr;
  if (raw::advise(page, kPage, MADV_WIPEONFORK) == 0) return ::new (page) std::atomic<std::uint32_t>(0);
  raw::unmap_memory(page, kPage);
  return nullptr;
}

/// The bits above the process id count the forks between the first process and this one.
constexpr unsigned kProcessIdBits = 22;  // PID_MAX_LIMIT of 64-bit kernels
std::atomic<std::atomic<std::uint32_t>*> g_process_mark{nullptr};
std::atomic<bool> g_process_mark_tried{false};

}  // namespace

std::uint32_t process_generation() noexcept {
  std::atomic<std::uint32_t>* const kept = g_process_mark.load(std::memory_order_acquire);
  if (kept == nullptr) {
    if (!g_process_mark_tried.exchange(true)) {
      const ErrnoKeeper keeper;
      g_process_mark.store(wiped_on_fork(), std::memory_order_release);
    }
    return raw::process();
  }
  std::uint32_t mark = kept->load(std::memory_order_relaxed);
  if (mark != 0) return mark;
  // The value of an ancestor: this memory is not wiped.
  static std::atomic<std::uint32_t> g_last{0};
  const std::uint32_t last = g_last.load(std::memory_order_relaxed);
  const std::uint32_t fresh =
      raw::process() | (last == 0 ? 0 : ((last >> kProcessIdBits) + 1) << kProcessIdBits);
  if (!kept->compare_exchange_strong(mark, fresh)) return mark;  // another thread was first
  g_last.store(fresh, std::memory_order_relaxed);
  return fresh;
}

std::uint32_t process_id() noexcept { return process_generation() & ((1U << kProcessIdBits) - 1); }

std::uint64_t thread_token() noexcept {
  return std::uint64_t{process_generation()} << 32U |
         (reinterpret_cast<std::uintptr_t>(&t_inside) >> 6U & 0xffffffffU);
}

std::uint32_t thread_id() noexcept { return static_cast<std::uint32_t>(raw::call(SYS_gettid)); }

}  // namespace kshim::shim

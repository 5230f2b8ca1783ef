// SPDX-License-Identifier: Apache-2.0
#include "guest/process_generation.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "guest/signals.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

constexpr std::size_t kPage = 4096;

/// QEMU's user mode accepts the advice and ignores it. Linux refuses it for shared memory.
bool is_refused_for_shared_memory() noexcept {
  auto* const page = reinterpret_cast<void*>(
      raw::call(SYS_mmap, nullptr, kPage, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0L));
  if (page == MAP_FAILED) return false;
  const bool refused = raw::advise(page, kPage, MADV_WIPEONFORK) != 0;
  raw::unmap_memory(page, kPage);
  return refused;
}

/// A page that reads as zero in a child of fork (Linux 4.14); null if the kernel does not support that.
std::atomic<std::uint32_t>* wiped_on_fork() noexcept {
  void* page = raw::map_memory(kPage);
  if (page == nullptr) return nullptr;
  if (raw::advise(page, kPage, MADV_WIPEONFORK) == 0 && is_refused_for_shared_memory())
    return ::new (page) std::atomic<std::uint32_t>(0);
  raw::unmap_memory(page, kPage);
  return nullptr;
}

std::atomic<std::atomic<std::uint32_t>*> g_mark{nullptr};
std::atomic<bool> g_no_mark{false};
std::atomic<std::uint32_t> g_last{0};  ///< of this process, or of an ancestor

/// nullptr where there is none.
std::atomic<std::uint32_t>* mark() noexcept {
  std::atomic<std::uint32_t>* kept = g_mark.load(std::memory_order_acquire);
  if (kept != nullptr || g_no_mark.load(std::memory_order_relaxed)) return kept;
  std::atomic<std::uint32_t>* const fresh = wiped_on_fork();
  if (fresh == nullptr) {
    g_no_mark.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  if (g_mark.compare_exchange_strong(kept, fresh, std::memory_order_acq_rel)) return fresh;
  raw::unmap_memory(fresh, kPage);
  return kept;
}

}  // namespace

std::uint32_t process_generation() noexcept {
  std::atomic<std::uint32_t>* const kept = mark();
  if (kept == nullptr) return raw::process();
  std::uint32_t number = kept->load(std::memory_order_relaxed);
  if (number != 0) return number;
  const std::uint32_t fresh = g_last.load(std::memory_order_relaxed) + 1;
  g_last.store(fresh, std::memory_order_relaxed);
  return kept->compare_exchange_strong(number, fresh) ? fresh : number;  // another thread was first
}

std::uint64_t thread_token() noexcept {
  constexpr std::uint64_t kThread = (std::uint64_t{1} << kBitsOfThread) - 1;
  return std::uint64_t{process_generation()} << kBitsOfThread |
         (reinterpret_cast<std::uintptr_t>(&t_inside) >> 6U & kThread);
}

std::uint32_t thread_id() noexcept { return raw::thread(); }

}  // namespace kshim::shim

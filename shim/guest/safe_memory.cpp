// SPDX-License-Identifier: Apache-2.0
#include "guest/safe_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

constexpr std::size_t kPage = 4096;

/// By its thread's number the kernel reads this process's memory, also if the main thread has ended. A child
/// of vfork, which has its parent's variables, may be refused.
std::uint32_t own_number() noexcept {
  static constinit thread_local std::uint32_t number = 0;
  static constinit thread_local std::uint32_t process = 0;
  if (process != process_generation()) {
    number = raw::thread();
    process = process_generation();
  }
  return number;
}

/// Bytes that were read; -1 for none.
long read_by_call(const iovec* local, std::size_t locals, const iovec* remote, std::size_t remotes) noexcept {
  return raw::call(SYS_process_vm_readv, own_number(), local, locals, remote, remotes, 0UL);
}

std::atomic<bool> g_asks_for_pages{true};

/// Asks for one page, or for two at once. A fraction of the price of read_by_call(), and allowed in sandboxes
/// that refuse that (old container run times, gVisor): the kernel reads the set of signals, 8 bytes that
/// may lie on both pages, before it finds that the time limit is none and gives up.
/// 1: all can be read, 0: not all, -1: a sandbox refuses to say.
long ask_for_pages(std::uintptr_t page, std::size_t count) noexcept {
  constexpr std::size_t kSet = 8;
  const timespec never{0, -1};
  const std::uintptr_t set = count == 1 ? page : page + kPage - kSet / 2;
  if (raw::call(SYS_rt_sigtimedwait, set, nullptr, &never, kSet) >= 0) return -1;
  if (raw::t_error == EFAULT) return 0;
  return raw::t_error == EINVAL ? 1 : -1;
}

}  // namespace

KernelRead read_by_kernel(const iovec* local, const iovec* remote, std::size_t count,
                          std::size_t size) noexcept {
  const long got = read_by_call(local, count, remote, count);
  if (got == static_cast<long>(size)) return KernelRead::done;
  return got >= 0 || raw::t_error == EFAULT ? KernelRead::unreadable : KernelRead::refused;
}

bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const KernelRead answer = read_by_kernel(&local, &remote, 1, size);
  if (answer != KernelRead::refused) return answer == KernelRead::done;
  if (readable_bytes(from, size) != size) return false;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return true;
}

namespace {

/// How many of two pages at most, or -1.
long readable_of_two(std::uintptr_t page, std::size_t count) noexcept {
  if (count > 1) {
    const long both = ask_for_pages(page, 2);
    if (both != 0) return both < 0 ? -1 : 2;
  }
  return ask_for_pages(page, 1);
}

/// How many of the pages from `page` on can be read.
std::size_t readable_pages(std::uintptr_t page, std::size_t count) noexcept {
  constexpr std::size_t kFew = 8;  // for more, a byte of each is cheaper
  constexpr std::size_t kAtOnce = 32;
  char bytes[kAtOnce];
  iovec remote[kAtOnce];
  const bool asks = g_asks_for_pages.load(std::memory_order_relaxed);
  std::size_t done = 0;
  while (done < count) {
    const std::uintptr_t next = page + done * kPage;
    long got = asks && count <= kFew ? readable_of_two(next, count - done) : -1;
    if (got < 0) {
      const std::size_t part = std::min(count - done, kAtOnce);
      for (std::size_t i = 0; i < part; ++i) remote[i] = {reinterpret_cast<void*>(next + i * kPage), 1};
      const iovec local{bytes, part};
      got = read_by_call(&local, 1, remote, part);
      if (got < 0 && raw::t_error != EFAULT && asks) got = readable_of_two(next, count - done);
    }
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

void never_ask_for_pages() noexcept { g_asks_for_pages.store(false, std::memory_order_relaxed); }

std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept {
  if (size == 0) return 0;
  const std::uintptr_t first = address / kPage;
  const std::uintptr_t last = (std::min(size - 1, ~address) + address) / kPage;
  const std::size_t pages = readable_pages(first * kPage, last - first + 1);
  return pages == 0 ? 0 : std::min(size, pages * kPage - address % kPage);
}

std::string_view readable_text(const char* from) noexcept {
  constexpr std::size_t kMaxLength = 1U << 20U;
  std::size_t size = 0;
  while (size < kMaxLength) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(from) + size;
    const std::size_t chunk = kPage - address % kPage;
    if (readable_bytes(address, 1) == 0) return {};
    const std::size_t length = strnlen(from + size, chunk);
    size += length;
    if (length < chunk) return {from, size};
  }
  return {};
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "guest/safe_memory.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include "guest/clock.h"
#include "guest/process_generation.h"
#include "guest/signals.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

constexpr std::size_t kPage = 4096;

/// System calls that say whether a page can be read, and change nothing: the kernel reads an argument before
/// it finds that there is nothing to do. They cost a quarter of process_vm_readv, and sandboxes that forbid
/// that (old container run times) allow them. Programs that emulate system calls (rt_sigprocmask, because
/// their handler's return would undo it) pass these on.
enum class Way : int {
  unknown,
  event,  ///< epoll_ctl, which reads the event before it looks for the descriptor: EBADF
  futex,  ///< FUTEX_WAIT for a word that has another value (EAGAIN), else no time (ETIMEDOUT)
  none,
};
std::atomic<Way> g_way{Way::unknown};

/// Nothing if the answer is not the kernel's: a sandbox's, or that of a program that emulates system calls.
std::optional<bool> ask(Way way, std::uintptr_t place) noexcept {
  constexpr int kNoFile = -1;
  constexpr int kAdd = 1;  // EPOLL_CTL_ADD
  constexpr std::uint32_t kUnlikely = 0x6b73686d;
  const timespec no_time{0, 0};
  const bool event = way == Way::event;
  const long answer = event
                          ? raw::call(SYS_epoll_ctl, kNoFile, kAdd, kNoFile, place)
                          : raw::call(SYS_futex, place, FUTEX_WAIT_PRIVATE, kUnlikely, &no_time, nullptr, 0);
  if (answer == 0) return std::nullopt;
  if (raw::t_error == EFAULT) return false;
  if (event ? raw::t_error == EBADF : raw::t_error == EAGAIN || raw::t_error == ETIMEDOUT) return true;
  return std::nullopt;
}

/// An emulator that looks for the descriptor first (gVisor) would report every page as readable. A page of
/// the stack and the last one of the address space, which is never mapped, tell; the second is not shown to
/// an emulator that gave no answer for the first, since it may read there.
bool is_honest(Way way) noexcept {
  const char here = 0;
  return ask(way, reinterpret_cast<std::uintptr_t>(&here) / kPage * kPage) == true &&
         ask(way, ~std::uintptr_t{0} / kPage * kPage) == false;
}

/// The first way after `way` that works here. A program may enter a sandbox at any time.
Way way_after(Way way) noexcept {
  Way next = way;
  do {
    next = static_cast<Way>(static_cast<int>(next) + 1);
  } while (next != Way::none && !is_honest(next));
  g_way.compare_exchange_strong(way, next, std::memory_order_relaxed);
  return next;
}

/// By this thread's number the kernel reads this process's memory.
constinit thread_local std::uint32_t t_own_number = 0;
constinit thread_local bool t_many_reads = false;        ///< a ScopedManyReads lives
constinit thread_local std::uint32_t t_kept_number = 0;  ///< for its time
constinit thread_local std::uint32_t t_kept_of = 0;      ///< the process_generation() of that number

/// Not remembered for longer than a ScopedManyReads: a child of vfork shares this memory. A handler may fork
/// meanwhile.
std::uint32_t own_number() noexcept {
  if (!t_many_reads) return raw::thread();
  const std::uint32_t process = process_generation();
  if (t_kept_number == 0 || t_kept_of != process) {
    t_kept_number = raw::thread();
    t_kept_of = process;
  }
  return t_kept_number;
}

long read_by_number(std::uint32_t thread, const iovec* local, const iovec* remote,
                    std::size_t count) noexcept {
  return raw::call(SYS_process_vm_readv, thread, local, count, remote, count, 0UL);
}

/// A sandbox may refuse with any error, or answer gettid with another number, which may be another process's.
bool is_own_number(std::uint32_t thread) noexcept {
  const volatile std::uint64_t here = now_nanoseconds();
  std::uint64_t copy = 0;
  const iovec local{&copy, sizeof copy};
  const iovec remote{const_cast<std::uint64_t*>(&here), sizeof copy};
  return read_by_number(thread, &local, &remote, 1) == sizeof copy && copy == here;
}

KernelRead ask_kernel(const iovec* local, const iovec* remote, std::size_t count, std::size_t size) noexcept {
  const std::uint32_t thread = own_number();
  if (thread != t_own_number) {
    if (!is_own_number(thread)) return KernelRead::refused;
    t_own_number = thread;
  }
  const long got = read_by_number(thread, local, remote, count);
  if (got == static_cast<long>(size)) return KernelRead::done;
  return got >= 0 || (raw::t_error == EFAULT && is_own_number(thread)) ? KernelRead::unreadable
                                                                       : KernelRead::refused;
}

/// This thread is in such a system call, or a handler has left it by longjmp.
constinit thread_local bool t_reads = false;

KernelRead read_at_once(const iovec* local, const iovec* remote, std::size_t count,
                        std::size_t size) noexcept {
  const ScopedBlockSignals held(!t_inside || t_reads);
  // In the handler of SIGSYS that a read has raised, another read would raise the next one.
  if (t_reads && (held.before() & signal_bit(SIGSYS)) != 0) return KernelRead::refused;
  t_reads = true;
  const KernelRead answer = ask_kernel(local, remote, count, size);
  t_reads = false;
  return answer;
}

bool page_is_readable(std::uintptr_t page) noexcept {
  Way way = g_way.load(std::memory_order_relaxed);
  if (way == Way::unknown) way = way_after(way);
  for (; way != Way::none; way = way_after(way))
    if (const std::optional<bool> answer = ask(way, page)) return *answer;
  std::uint64_t copy = 0;
  const iovec local{&copy, sizeof copy};
  const iovec remote{reinterpret_cast<void*>(page), sizeof copy};
  return read_at_once(&local, &remote, 1, sizeof copy) == KernelRead::done;
}

/// One question for the pages before and after a boundary: the event lies in both. False: ask for each.
bool both_pages_are_readable(std::uintptr_t boundary) noexcept {
  return g_way.load(std::memory_order_relaxed) == Way::event && ask(Way::event, boundary - 4) == true;
}

}  // namespace

KernelRead read_by_kernel(const iovec* local, const iovec* remote, std::size_t count,
                          std::size_t size) noexcept {
  return read_at_once(local, remote, count, size);
}

ScopedManyReads::ScopedManyReads() noexcept : outermost_(!t_many_reads) {
  if (outermost_) t_kept_number = 0;
  t_many_reads = true;
}

ScopedManyReads::~ScopedManyReads() {
  if (outermost_) t_many_reads = false;
}

void never_ask_for_pages() noexcept { g_way.store(Way::none, std::memory_order_relaxed); }

bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept {
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const KernelRead answer = read_by_kernel(&local, &remote, 1, size);
  if (answer != KernelRead::refused) return answer == KernelRead::done;
  if (readable_bytes(from, size) != size) return false;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return true;
}

std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept {
  std::size_t done = 0;
  while (done < size) {
    const std::uintptr_t at = address + done;
    if (at < address) break;
    const std::size_t here = kPage - at % kPage;
    if (size - done > here && both_pages_are_readable(at + here)) {
      done += here + kPage;
      continue;
    }
    if (!page_is_readable(at / kPage * kPage)) return done;
    done += here;
  }
  return std::min(done, size);
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

// SPDX-License-Identifier: Apache-2.0
#include "guest.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "busy.h"
#include "program.h"
#include "slices.h"
#include "system_calls.h"

namespace kshim::shim {

constinit thread_local std::uintptr_t t_busy = 0;

namespace {

/// A page that reads as zero in a fork's child (Linux 4.14); null where the kernel cannot do that.
std::atomic<std::uint32_t>* wiped_on_fork() noexcept {
  constexpr std::size_t kPage = 4096;
  void* page = raw::map_memory(kPage);
  if (page == nullptr) return nullptr;
  if (raw::advise(page, kPage, MADV_WIPEONFORK) == 0) return ::new (page) std::atomic<std::uint32_t>(0);
  raw::unmap_memory(page, kPage);
  return nullptr;
}

/// Above the process id stands how often a fork was noticed on the way to this process.
constexpr unsigned kProcessIdBits = 22;  // PID_MAX_LIMIT of 64-bit kernels
std::atomic<std::atomic<std::uint32_t>*> g_process_mark{nullptr};
std::atomic<bool> g_process_mark_tried{false};

/// 0 where the call is refused: programs do not notice, they read the clock without it (vDSO).
std::uint64_t true_nanoseconds() noexcept {
  timespec now{};
  if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) != 0) return 0;
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

Patience::Patience() noexcept : start_(true_nanoseconds()) {}

bool Patience::wait() noexcept {
  constexpr std::uint64_t kLongest = 200'000'000;  // nanoseconds; a record takes about one microsecond
  constexpr std::uint32_t kMostTurns = 100'000;    // 0.03 s and more: a turn is a system call
  raw::yield();
  const std::uint64_t now = start_ == 0 ? 0 : true_nanoseconds();
  if (now != 0) return now - start_ < kLongest;
  // With others at work a turn may be a whole slice of time: libc's clock as well, which may stand still.
  if (turns_ == 0) blind_start_ = now_nanoseconds();
  return ++turns_ < kMostTurns && now_nanoseconds() - blind_start_ < kLongest;
}

std::uint32_t process_mark() noexcept {
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
  // What an ancestor left in memory that is not wiped.
  static std::atomic<std::uint32_t> g_last{0};
  const std::uint32_t last = g_last.load(std::memory_order_relaxed);
  const std::uint32_t fresh =
      raw::process() | (last == 0 ? 0 : ((last >> kProcessIdBits) + 1) << kProcessIdBits);
  if (!kept->compare_exchange_strong(mark, fresh)) return mark;  // another thread was first
  g_last.store(fresh, std::memory_order_relaxed);
  return fresh;
}

std::uint32_t process_id() noexcept { return process_mark() & ((1U << kProcessIdBits) - 1); }

std::uint64_t thread_mark() noexcept {
  return std::uint64_t{process_mark()} << 32U |
         (reinterpret_cast<std::uintptr_t>(&t_busy) >> 6U & 0xffffffffU);
}

bool PatientLock::attempt(std::uint64_t mark) noexcept {
  std::uint64_t holder = holder_.load(std::memory_order_relaxed);
  return holder >> 32U != mark >> 32U &&
         holder_.compare_exchange_strong(holder, mark, std::memory_order_acquire);
}

bool PatientLock::acquire() noexcept {
  constexpr int kSpins = 1000;
  const std::uint64_t mark = thread_mark();
  if (holder_.load(std::memory_order_relaxed) == mark) return false;
  for (int i = 0; i < kSpins; ++i)
    if (attempt(mark)) return true;
  Patience patience;
  while (!stuck_.load(std::memory_order_relaxed) && patience.wait())
    if (attempt(mark)) return true;
  stuck_.store(true, std::memory_order_relaxed);
  return false;
}

// A bump allocator over 1 MiB blocks. A block that another thread fills first is lost to the loser: a few
// bytes.
std::string_view keep_text(std::string_view text) noexcept {
  constexpr std::size_t kBlock = 1U << 20U;
  constexpr std::size_t kMaxBlocks = 64;
  struct Block {
    std::atomic<std::size_t> used;
    char bytes[kBlock - sizeof(std::atomic<std::size_t>)];
  };
  static std::atomic<Block*> g_block{nullptr};
  static std::atomic<std::size_t> g_blocks{0};
  if (text.size() + 1 > sizeof(Block::bytes) / 4) return {};
  for (;;) {
    Block* block = g_block.load(std::memory_order_acquire);
    if (block != nullptr) {
      const std::size_t start = block->used.fetch_add(text.size() + 1, std::memory_order_relaxed);
      if (start + text.size() + 1 <= sizeof(Block::bytes)) {
        if (!text.empty()) std::memcpy(block->bytes + start, text.data(), text.size());
        return {block->bytes + start, text.size()};
      }
    }
    if (g_blocks.fetch_add(1, std::memory_order_relaxed) >= kMaxBlocks) return {};
    void* fresh = raw::map_memory(sizeof(Block));
    if (fresh == nullptr) return {};
    if (!g_block.compare_exchange_strong(block, static_cast<Block*>(fresh), std::memory_order_acq_rel))
      raw::unmap_memory(fresh, sizeof(Block));
  }
}

namespace {

constexpr std::size_t kPage = 4096;

/// rt_sigprocmask reads the set before it looks at `how`: EINVAL says that the eight bytes are there, EFAULT
/// that they are not; nothing is changed either way. A quarter of process_vm_readv's price a page, and
/// allowed in sandboxes that forbid that (old container run times).
bool page_is_readable(std::uintptr_t page) noexcept {
  constexpr int kNoSuchHow = -1;
  return syscall(SYS_rt_sigprocmask, kNoSuchHow, page, nullptr, 8UL) != 0 && errno != EFAULT;
}

/// Valgrind counts an error of the program's for each such question about memory that is not there. An
/// emulator that looks at `how` first (QEMU's user mode) would take everything for readable: it is asked once
/// about the end of the address space, which never is.
bool pages_can_be_asked() noexcept {
  enum : int { unknown, yes, no };
  static std::atomic<int> g_known{unknown};
  int known = g_known.load(std::memory_order_relaxed);
  if (known == unknown) {
    known = began_under_valgrind() || page_is_readable(~std::uintptr_t{0} / kPage * kPage) ? no : yes;
    g_known.store(known, std::memory_order_relaxed);
  }
  return known == yes;
}

bool is_refusal(int error) noexcept { return error == EPERM || error == ENOSYS || error == EACCES; }

}  // namespace

// process_vm_readv on the own process: a bad address is EFAULT, where a plain read would be SIGSEGV.
bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const long got = syscall(SYS_process_vm_readv, process_id(), &local, 1UL, &remote, 1UL, 0UL);
  if (got >= 0 || !is_refusal(errno)) return got == static_cast<long>(size);
  if (!pages_can_be_asked() || readable_bytes(from, size) != size) return false;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
  return true;
}

std::size_t readable_bytes(std::uintptr_t address, std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  const bool by_page = pages_can_be_asked();
  std::size_t done = 0;
  while (done < size) {
    const std::uintptr_t at = address + done;
    if (at < address) break;
    char byte = 0;
    if (by_page ? !page_is_readable(at / kPage * kPage) : !read_memory(at, &byte, 1)) return done;
    done += kPage - at % kPage;
  }
  return std::min(done, size);
}

std::string_view readable_text(const char* from) noexcept {
  constexpr std::size_t kLongest = 1U << 20U;
  std::size_t size = 0;
  while (size < kLongest) {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(from) + size;
    const std::size_t chunk = kPage - address % kPage;
    if (readable_bytes(address, 1) == 0) return {};
    const std::size_t length = strnlen(from + size, chunk);
    size += length;
    if (length < chunk) return {from, size};
  }
  return {};
}

std::uint64_t now_nanoseconds() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t thread_id() noexcept { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

Text<40> to_hex(Bytes bytes) noexcept {
  constexpr char kDigits[] = "0123456789abcdef";
  Text<40> out;
  for (const std::byte byte : bytes) {
    out.put(kDigits[static_cast<unsigned>(byte) >> 4U]);
    out.put(kDigits[static_cast<unsigned>(byte) & 15U]);
  }
  return out;
}

std::string_view base_name(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : part_of(path, slash + 1);
}

}  // namespace kshim::shim

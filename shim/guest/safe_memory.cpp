// SPDX-License-Identifier: Apache-2.0
#include "guest/safe_memory.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "guest/errno_keeper.h"
#include "guest/process_generation.h"
#include "guest/syscalls.h"

namespace kshim::shim {

namespace {

constexpr std::size_t kPage = 4096;

/// rt_sigprocmask reads the set before it looks at `how`: EINVAL says that the eight bytes are there, EFAULT
/// that they are not; nothing is changed either way. It costs a quarter of process_vm_readv, and sandboxes
/// that forbid that (old container run times) allow it.
bool page_is_readable(std::uintptr_t page) noexcept {
  constexpr int kNoSuchHow = -1;
  return raw::call(SYS_rt_sigprocmask, kNoSuchHow, page, nullptr, 8UL) != 0 && errno != EFAULT;
}

enum : int { unknown, yes, no };
std::atomic<int> g_pages_can_be_asked{unknown};

/// An emulator that checks `how` first (QEMU's user mode) would report every page as readable. The last page
/// of the address space, which is never mapped, tells.
bool pages_can_be_asked() noexcept {
  int known = g_pages_can_be_asked.load(std::memory_order_relaxed);
  if (known == unknown) {
    known = page_is_readable(~std::uintptr_t{0} / kPage * kPage) ? no : yes;
    g_pages_can_be_asked.store(known, std::memory_order_relaxed);
  }
  return known == yes;
}

bool is_refusal(int error) noexcept { return error == EPERM || error == ENOSYS || error == EACCES; }

}  // namespace

void never_ask_for_pages() noexcept { g_pages_can_be_asked.store(no, std::memory_order_relaxed); }

// process_vm_readv on this process: a bad address gives EFAULT, not SIGSEGV.
bool read_memory(std::uintptr_t from, void* to, std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  const iovec local{to, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const long got = raw::call(SYS_process_vm_readv, process_id(), &local, 1UL, &remote, 1UL, 0UL);
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

}  // namespace kshim::shim

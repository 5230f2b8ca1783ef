// SPDX-License-Identifier: Apache-2.0
// System calls by instruction. libc's wrappers are cancellation points (pthread_cancel must not end a thread
// of the host inside the shim), other preloaded libraries replace them (fakeroot, sandboxes, I/O tracers),
// and a program may define functions or variables of their names. The host's errno stays as it is: a program
// may define __errno_location, too.
#pragma once
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/stat.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace kshim::shim::raw {

/// The error of this thread's last system call by the shim that failed.
inline constinit thread_local int t_error = 0;

#if defined(__aarch64__)
inline long enter_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#elif defined(__x86_64__)
inline long enter_kernel(long number, long a, long b, long c, long d, long e, long f) noexcept {
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#else
#error "how to enter the kernel on this architecture is not known"
#endif

template <class Argument>
long as_word(Argument argument) noexcept {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<long>(argument);
  else
    return static_cast<long>(argument);
}
inline long as_word(std::nullptr_t) noexcept { return 0; }

/// -1 and t_error for an error.
template <class... Arguments>
long call(long number, Arguments... arguments) noexcept {
  constexpr long kMaxErrorBytes = 4095;
  const long words[6] = {as_word(arguments)...};
  const long result = enter_kernel(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (result >= 0 || result < -kMaxErrorBytes) return result;
  t_error = static_cast<int>(-result);
  return -1;
}

/// Whether the descriptor is on a local file system. Others (NFS, FUSE) may not answer.
inline bool is_on_local_disk(int fd) noexcept {
  constexpr unsigned long kLocal[] = {0xef53,     0x01021994, 0x58465342, 0x9123683e,
                                      0x794c7630, 0x2fc12fc1, 0xf2f52010};
  struct statfs info {};
  if (call(SYS_fstatfs, fd, &info) != 0) return false;
  for (const unsigned long type : kLocal)  // ext, tmpfs, XFS, Btrfs, overlay, ZFS, F2FS
    if (static_cast<unsigned long>(info.f_type) == type) return true;
  return false;
}
inline int open_file(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline int open_at(int folder, const char* name, int flags, unsigned mode) noexcept {
  return static_cast<int>(call(SYS_openat, folder, name, flags, mode));
}
inline int make_folder_at(int folder, const char* name, unsigned mode) noexcept {
  return static_cast<int>(call(SYS_mkdirat, folder, name, mode));
}
inline long read_link_at(int folder, const char* name, char* to, std::size_t size) noexcept {
  return call(SYS_readlinkat, folder, name, to, size);
}
/// Entries of a folder as getdents64 has them: bytes, 0 at the end.
inline long list_folder(int folder, void* to, std::size_t size) noexcept {
  return call(SYS_getdents64, folder, to, size);
}
inline int change_mode(int fd, unsigned mode) noexcept {
  return static_cast<int>(call(SYS_fchmod, fd, mode));
}
inline int close_file(int fd) noexcept { return static_cast<int>(call(SYS_close, fd)); }
inline ssize_t read_at(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept {
  return call(SYS_pread64, fd, to, size, offset);
}
inline int protect(std::uintptr_t page, std::size_t size, int rights) noexcept {
  return static_cast<int>(call(SYS_mprotect, page, size, rights));
}
inline ssize_t write_file(int fd, const void* from, std::size_t size) noexcept {
  return call(SYS_write, fd, from, size);
}
/// A number of at least `lowest`, close-on-exec.
inline int duplicate_above(int fd, int lowest) noexcept {
  return static_cast<int>(call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest));
}
inline ssize_t read_link(const char* path, char* to, std::size_t size) noexcept {
  return call(SYS_readlinkat, AT_FDCWD, path, to, size);
}
inline int status_of(int fd, struct stat& out) noexcept {
  return static_cast<int>(call(SYS_fstat, fd, &out));
}
/// AT_STATX_DONT_SYNC, which Linux 4.11 and later take for newfstatat, too.
constexpr int kAskNoServer = 0x4000;
/// Device and inode alone. fstat asks for the times as well, and after that Linux (6.13 and later) takes a
/// finer time for the next write, which then costs twice as much.
inline bool identify(int fd, dev_t& device, ino_t& inode) noexcept {
#ifdef SYS_statx
  constexpr int kTheDescriptor = 0x1000;  // AT_EMPTY_PATH
  struct statx info {};
  if (call(SYS_statx, fd, "", kTheDescriptor | kAskNoServer, STATX_INO, &info) == 0) {
    device = makedev(info.stx_dev_major, info.stx_dev_minor);
    inode = info.stx_ino;
    return true;
  }
  if (t_error == EBADF) return false;
#endif
  struct stat status {};
  if (status_of(fd, status) != 0) return false;
  device = status.st_dev;
  inode = status.st_ino;
  return true;
}
inline int status_of_path(const char* path, struct stat& out, int flags = 0) noexcept {
  return static_cast<int>(call(SYS_newfstatat, AT_FDCWD, path, &out, flags));
}
/// Of an entry of a folder; follows no link.
inline int status_at(int folder, const char* name, struct stat& out) noexcept {
  return static_cast<int>(call(SYS_newfstatat, folder, name, &out, AT_SYMLINK_NOFOLLOW));
}
inline int status_of_link(const char* path, struct stat& out) noexcept {
  return status_of_path(path, out, AT_SYMLINK_NOFOLLOW);
}
inline int shorten_file(int fd, off_t size) noexcept {
  return static_cast<int>(call(SYS_ftruncate, fd, size));
}
inline int advise(void* memory, std::size_t size, int advice) noexcept {
  return static_cast<int>(call(SYS_madvise, memory, size, advice));
}
/// Maps zeroed private memory; nullptr if that fails. Large mappings are excluded from core dumps.
inline void* map_memory(std::size_t size, int more_flags = 0) noexcept {
  constexpr int kRights = PROT_READ | PROT_WRITE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | more_flags;
#ifdef __SANITIZE_THREAD__  // sees libc's calls alone, and would take memory that is mapped again for the old
  void* const got = ::mmap(nullptr, size, kRights, flags, -1, 0);
#else
  auto* const got = reinterpret_cast<void*>(call(SYS_mmap, nullptr, size, kRights, flags, -1, 0L));
#endif
  if (got == MAP_FAILED) return nullptr;
  constexpr std::size_t kLarge = std::size_t{256} << 10U;
  if (size >= kLarge) advise(got, size, MADV_DONTDUMP);
  return got;
}
inline void unmap_memory(void* memory, std::size_t size) noexcept {
#ifdef __SANITIZE_THREAD__
  ::munmap(memory, size);
#else
  call(SYS_munmap, memory, size);
#endif
}
/// By this number, a thread reads its own memory also if the main thread has ended, and in a child of vfork.
inline std::uint32_t thread() noexcept { return static_cast<std::uint32_t>(call(SYS_gettid)); }
inline std::uint32_t process() noexcept { return static_cast<std::uint32_t>(call(SYS_getpid)); }
inline std::uint32_t parent_process() noexcept { return static_cast<std::uint32_t>(call(SYS_getppid)); }
inline int system_names(utsname& out) noexcept { return static_cast<int>(call(SYS_uname, &out)); }
inline uid_t user() noexcept { return static_cast<uid_t>(call(SYS_geteuid)); }
/// Sleeps; returns early if a signal interrupts it.
inline void sleep_for(long nanoseconds) noexcept {
  const timespec time{0, nanoseconds};
  call(SYS_nanosleep, &time, nullptr);
}
/// Sleeps while the word has that value, up to the time limit. If a sandbox refuses futex, sleeps briefly.
inline void sleep_while(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                        long nanoseconds) noexcept {
  constexpr long kMoment = 100'000;
  const timespec time{0, nanoseconds};
  if (call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, &time, nullptr, 0) != 0 && t_error != EAGAIN &&
      t_error != ETIMEDOUT && t_error != EINTR)
    sleep_for(kMoment);
}
inline void wake_one(const std::atomic<std::uint32_t>& word) noexcept {
  call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}
/// The working directory; false where it is gone, or outside of a chroot.
inline bool working_folder(char* out, std::size_t size) noexcept {
  return call(SYS_getcwd, out, size) > 0 && out[0] == '/';
}
/// getrlimit, which is faster than prlimit64: that looks a process up.
inline int get_limit(int which, rlimit& out) noexcept {
#ifdef SYS_getrlimit
  if (call(SYS_getrlimit, which, &out) == 0) return 0;
#endif
  return static_cast<int>(call(SYS_prlimit64, 0, which, nullptr, &out));
}
/// Does not wait.
inline int poll_once(pollfd& descriptor) noexcept {
  const timespec now{0, 0};
  return static_cast<int>(call(SYS_ppoll, &descriptor, 1UL, &now, nullptr, 0UL));
}
/// Whether a write would not wait, by pselect6: with RLIMIT_NOFILE 0, ppoll refuses every descriptor.
/// `fd`: below 64. True also for a pipe without a reader.
inline bool can_write(int fd) noexcept {
  const timespec now{0, 0};
  std::uint64_t set = std::uint64_t{1} << static_cast<unsigned>(fd);
  return call(SYS_pselect6, fd + 1, nullptr, &set, nullptr, &now, nullptr) == 1;
}
inline int packet_socket() noexcept {
  return static_cast<int>(call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}
inline int connect_to(int fd, const sockaddr* address, socklen_t length) noexcept {
  return static_cast<int>(call(SYS_connect, fd, address, length));
}
inline ssize_t send_to(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                       socklen_t length) noexcept {
  return call(SYS_sendto, fd, from, size, flags, address, length);
}
/// The kernel's sigset_t: signal n is bit n-1.
using SignalSet = std::uint64_t;
inline int change_mask(int how, const SignalSet& set, SignalSet* before) noexcept {
  return static_cast<int>(call(SYS_rt_sigprocmask, how, &set, before, sizeof set));
}
inline void pending_signals(SignalSet& out) noexcept { call(SYS_rt_sigpending, &out, sizeof out); }
/// Removes one pending signal of the set, if there is one.
inline void discard_signal(const SignalSet& set) noexcept {
  const timespec now{0, 0};
  call(SYS_rt_sigtimedwait, &set, nullptr, &now, sizeof set);
}

}  // namespace kshim::shim::raw

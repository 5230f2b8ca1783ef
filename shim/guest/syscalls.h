// SPDX-License-Identifier: Apache-2.0
// System calls without libc's wrapper where that is a cancellation point (pthread_cancel must not end a
// host's thread inside a hook) and where other preloaded libraries like to stand in (fakeroot, sandboxes, I/O
// tracers). errno as usual.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace kshim::shim::raw {

inline int open_file(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
inline int open_at(int folder, const char* name, int flags, unsigned mode) noexcept {
  return static_cast<int>(syscall(SYS_openat, folder, name, flags, mode));
}
inline int make_folder_at(int folder, const char* name, unsigned mode) noexcept {
  return static_cast<int>(syscall(SYS_mkdirat, folder, name, mode));
}
inline long read_link_at(int folder, const char* name, char* to, std::size_t size) noexcept {
  return syscall(SYS_readlinkat, folder, name, to, size);
}
/// Entries of a folder as getdents64 has them: bytes, 0 at the end.
inline long list_folder(int folder, void* to, std::size_t size) noexcept {
  return syscall(SYS_getdents64, folder, to, size);
}
inline int change_mode(int fd, unsigned mode) noexcept {
  return static_cast<int>(syscall(SYS_fchmod, fd, mode));
}
inline int close_file(int fd) noexcept { return static_cast<int>(syscall(SYS_close, fd)); }
inline ssize_t read_file(int fd, void* to, std::size_t size) noexcept {
  return syscall(SYS_read, fd, to, size);
}
inline ssize_t read_at(int fd, void* to, std::size_t size, std::uint64_t offset) noexcept {
  return syscall(SYS_pread64, fd, to, size, offset);
}
inline int protect(std::uintptr_t page, std::size_t size, int rights) noexcept {
  return static_cast<int>(syscall(SYS_mprotect, page, size, rights));
}
inline ssize_t write_file(int fd, const void* from, std::size_t size) noexcept {
  return syscall(SYS_write, fd, from, size);
}
/// A number of at least `lowest`, close-on-exec.
inline int duplicate_above(int fd, int lowest) noexcept {
  return static_cast<int>(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest));
}
inline ssize_t read_link(const char* path, char* to, std::size_t size) noexcept {
  return syscall(SYS_readlinkat, AT_FDCWD, path, to, size);
}
inline int status_of(int fd, struct stat& out) noexcept {
  return static_cast<int>(syscall(SYS_fstat, fd, &out));
}
inline int status_of_path(const char* path, struct stat& out, int flags = 0) noexcept {
  return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, &out, flags));
}
inline int status_of_link(const char* path, struct stat& out) noexcept {
  return status_of_path(path, out, AT_SYMLINK_NOFOLLOW);
}
inline int shorten_file(int fd, off_t size) noexcept {
  return static_cast<int>(syscall(SYS_ftruncate, fd, size));
}
/// Zeroed memory of our own, or nullptr.
inline void* map_memory(std::size_t size, int more_flags = 0) noexcept {
  const long got = syscall(SYS_mmap, nullptr, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | more_flags, -1, 0L);
  return got == -1 ? nullptr : reinterpret_cast<void*>(got);
}
inline void unmap_memory(void* memory, std::size_t size) noexcept { syscall(SYS_munmap, memory, size); }
inline int advise(void* memory, std::size_t size, int advice) noexcept {
  return static_cast<int>(syscall(SYS_madvise, memory, size, advice));
}
inline std::uint32_t process() noexcept { return static_cast<std::uint32_t>(syscall(SYS_getpid)); }
inline std::uint32_t parent_process() noexcept { return static_cast<std::uint32_t>(syscall(SYS_getppid)); }
inline uid_t user() noexcept { return static_cast<uid_t>(syscall(SYS_geteuid)); }
inline void yield() noexcept { syscall(SYS_sched_yield); }
/// The working directory; false where it is gone, or outside of a chroot.
inline bool working_folder(char* out, std::size_t size) noexcept {
  return syscall(SYS_getcwd, out, size) > 0 && out[0] == '/';
}
/// Without the detour by prlimit64, which looks for a process first.
inline int get_limit(int which, rlimit& out) noexcept {
#ifdef SYS_getrlimit
  if (syscall(SYS_getrlimit, which, &out) == 0) return 0;
#endif
  return static_cast<int>(syscall(SYS_prlimit64, 0, which, nullptr, &out));
}
/// Does not wait.
inline int poll_once(pollfd& descriptor) noexcept {
  const timespec now{0, 0};
  return static_cast<int>(syscall(SYS_ppoll, &descriptor, 1UL, &now, nullptr, 0UL));
}
inline int packet_socket() noexcept {
  return static_cast<int>(syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}
inline int connect_to(int fd, const sockaddr* address, socklen_t length) noexcept {
  return static_cast<int>(syscall(SYS_connect, fd, address, length));
}
inline ssize_t send_to(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                       socklen_t length) noexcept {
  return syscall(SYS_sendto, fd, from, size, flags, address, length);
}
inline int signal_stack(stack_t& out) noexcept {
  return static_cast<int>(syscall(SYS_sigaltstack, nullptr, &out));
}
/// 8: the kernel's sigset_t; libc's is longer.
inline int change_mask(int how, const sigset_t& set, sigset_t* before) noexcept {
  return static_cast<int>(syscall(SYS_rt_sigprocmask, how, &set, before, 8UL));
}
inline void pending_signals(sigset_t& out) noexcept { syscall(SYS_rt_sigpending, &out, 8UL); }
/// Takes away one pending signal of the set, if there is one.
inline void discard_signal(const sigset_t& set) noexcept {
  const timespec now{0, 0};
  syscall(SYS_rt_sigtimedwait, &set, nullptr, &now, 8UL);
}

}  // namespace kshim::shim::raw

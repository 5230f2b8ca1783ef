// SPDX-License-Identifier: Apache-2.0
// System calls without libc's wrapper where that is a cancellation point (pthread_cancel must not end a
// host's thread inside a hook) and where other preloaded libraries like to stand in (fakeroot, sandboxes, I/O
// tracers). errno as usual.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace kshim::shim::raw {

inline int open_file(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
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
/// Without the detour by prlimit64, which looks for a process first.
inline int get_limit(int which, rlimit& out) noexcept {
#ifdef SYS_getrlimit
  if (syscall(SYS_getrlimit, which, &out) == 0) return 0;
#endif
  return static_cast<int>(syscall(SYS_prlimit64, 0, which, nullptr, &out));
}
inline int make_folder(const char* path, unsigned mode) noexcept {
  return static_cast<int>(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
/// Does not wait.
inline int poll_once(pollfd& descriptor) noexcept {
  const timespec now{0, 0};
  return static_cast<int>(syscall(SYS_ppoll, &descriptor, 1UL, &now, nullptr, 0UL));
}
inline ssize_t send_to(int fd, const void* from, std::size_t size, int flags, const sockaddr* address,
                       socklen_t length) noexcept {
  return syscall(SYS_sendto, fd, from, size, flags, address, length);
}
/// Takes away one pending signal of the set, if there is one. 8: the kernel's sigset_t.
inline void discard_signal(const sigset_t& set) noexcept {
  const timespec now{0, 0};
  syscall(SYS_rt_sigtimedwait, &set, nullptr, &now, 8UL);
}

}  // namespace kshim::shim::raw

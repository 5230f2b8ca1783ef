// SPDX-License-Identifier: Apache-2.0
// The system calls of FolderWalk through libc, for the command.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "kshim/files/open_file.h"

namespace kshim::report {

struct LibcCalls {
  using File = files::Descriptor;
  static int error() noexcept { return errno; }
  static int open_at(int folder, const char* name, int flags, unsigned mode) noexcept {
    return ::openat(folder, name, flags, mode);
  }
  static int make_folder_at(int folder, const char* name, unsigned mode) noexcept {
    return ::mkdirat(folder, name, mode);
  }
  static long read_link_at(int folder, const char* name, char* to, std::size_t size) noexcept {
    return ::readlinkat(folder, name, to, size);
  }
  static int status_of(int fd, struct stat& out) noexcept { return ::fstat(fd, &out); }
  static int change_mode(const char* path, unsigned mode) noexcept { return ::chmod(path, mode); }
  static uid_t user() noexcept { return ::geteuid(); }
};

}  // namespace kshim::report

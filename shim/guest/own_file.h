// SPDX-License-Identifier: Apache-2.0
// A descriptor of the shim's. Another thread of the host may close any number at any time (closefrom), and
// the host's next file then has it. So a number is closed only while it still is the file that the shim
// opened, and nothing here moves a file's position: a read by a stale number takes nothing from the host.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "guest/syscalls.h"

namespace kshim::shim {

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const noexcept = default;
  /// Whether the number is that file.
  bool is(int fd) const noexcept {
    FileIdentity now;
    return raw::identify(fd, now.device, now.inode) && now == *this;
  }
};

class OwnFile {
 public:
  OwnFile() = default;
  explicit OwnFile(int fd) noexcept : fd_(fd) {
    if (fd >= 0) raw::identify(fd, identity_.device, identity_.inode);
  }
  OwnFile(OwnFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), identity_(other.identity_) {}
  OwnFile& operator=(OwnFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(identity_, other.identity_);
    return *this;
  }
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;
  ~OwnFile() {
    const bool unknown = identity_ == FileIdentity();  // a sandbox refuses fstat
    if (fd_ >= 0 && (unknown || identity_.is(fd_))) raw::close_file(fd_);
  }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  const FileIdentity& identity() const noexcept { return identity_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  /// Bytes that were read; 0 at the end and for an error.
  std::size_t read(std::uint64_t offset, void* to, std::size_t size) const noexcept {
    const ssize_t got = fd_ >= 0 ? raw::read_at(fd_, to, size, offset) : 0;
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  /// Up to the end of the file, also of one in /proc, whose size is not known.
  std::size_t read_whole(void* to, std::size_t capacity) const noexcept {
    std::size_t size = 0;
    while (size < capacity) {
      const std::size_t got = read(size, static_cast<char*>(to) + size, capacity - size);
      if (got == 0) break;
      size += got;
    }
    return size;
  }

 private:
  int fd_ = -1;
  FileIdentity identity_;
};

/// A regular file for reading; none if it is anything else. Opening a FIFO would let a waiting writer mistake
/// the shim for its reader.
inline OwnFile open_regular_file(const char* path) noexcept {
  struct stat info {};
  if (raw::status_of_path(path, info) != 0 || !S_ISREG(info.st_mode)) return {};
  return OwnFile(raw::open_file(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace kshim::shim

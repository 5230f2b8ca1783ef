// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <utility>

#include "kshim/base/bytes.h"

namespace kshim::scan {

/// A file without a name, for what memory should not hold: $TMPDIR, else /var/tmp. It is gone when this is.
class UnnamedFile {
 public:
  /// False where none can be made.
  bool create();
  UnnamedFile() = default;
  UnnamedFile(UnnamedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UnnamedFile& operator=(UnnamedFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile() { close(); }
  bool exists() const noexcept { return fd_ >= 0; }
  /// False where the disk is full.
  bool append(Bytes bytes) const;
  void close() noexcept;
  /// Where this process can open it.
  std::filesystem::path path() const;
  int descriptor() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace kshim::scan

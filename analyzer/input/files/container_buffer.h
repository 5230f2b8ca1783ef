// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kshim/files/open_file.h"

namespace kshim::input {

/// A file without a name, for what memory should not hold: $TMPDIR, else /var/tmp. It is gone when this is.
class UnnamedFile {
 public:
  /// False where none can be made.
  bool create();
  bool exists() const noexcept { return static_cast<bool>(fd_); }
  /// False where the disk is full.
  bool append(Bytes bytes) const;
  void close() noexcept { fd_ = files::Descriptor(); }
  /// Where this process can open it.
  std::filesystem::path path() const;
  int descriptor() const noexcept { return fd_.get(); }

 private:
  files::Descriptor fd_;
};

/// Where a member is inflated to: memory that grows with what arrives, never with what a header announces,
/// and, beyond a limit, a file without a name.
class Buffer {
 public:
  explicit Buffer(std::uint64_t most_memory) : most_memory_(most_memory) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { drop(); }
  /// False when there is room neither in memory nor on the disk.
  bool append(Bytes bytes);
  /// Ready for the next member. A few pages are kept for it.
  void clear() noexcept;
  /// Valid until the next append() or clear(); empty where the file cannot be mapped.
  Bytes bytes();
  std::size_t size() const noexcept { return size_; }

 private:
  void drop() noexcept;

  std::uint64_t most_memory_;
  UnnamedFile file_;           ///< holds everything, where it exists
  std::byte* data_ = nullptr;  ///< memory; of a file, its mapping
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace kshim::input

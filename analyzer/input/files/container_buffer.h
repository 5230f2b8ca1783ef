// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "analyzer/input/files/unnamed_file.h"
#include "kshim/base/bytes.h"

namespace kshim::scan {

/// Where a member is inflated to: memory that grows with what arrives, never with what a header announces,
/// and, beyond a limit, a file without a name.
class Buffer {
 public:
  explicit Buffer(std::uint64_t most_memory) : most_memory_(most_memory) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  /// False when there is room neither in memory nor on the disk.
  bool append(Bytes bytes);
  /// Ready for the next member. A few pages are kept for it.
  void clear() noexcept;
  /// Valid until the next append() or clear(); empty where the file cannot be mapped.
  Bytes bytes();
  std::size_t size() const noexcept { return size_; }

 private:
  bool reserve(std::size_t size) noexcept;
  void unmap() noexcept;

  std::uint64_t most_memory_;
  UnnamedFile file_;           ///< holds everything, where it exists
  std::byte* data_ = nullptr;  ///< memory; of a file, its mapping
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace kshim::scan

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "analyzer/input/files/container_memory.h"
#include "kshim/base/bytes.h"

namespace kshim::scan {

/// Where a member is inflated to: anonymous memory that grows with what arrives, never with what a header
/// announces.
class Buffer {
 public:
  explicit Buffer(MemoryLease& lease) : lease_(lease) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  /// So many bytes are to come: waits until other threads have given back as many. Nothing is allocated.
  void expect(std::uint64_t size);
  /// False when there is no memory. May wait for other threads that hold some.
  bool append(Bytes bytes);
  /// Ready for the next member. A few pages are kept for it.
  void clear() noexcept;
  Bytes bytes() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }

 private:
  bool reserve(std::size_t size) noexcept;

  MemoryLease& lease_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t counted_ = 0;  // in the lease
};

}  // namespace kshim::scan

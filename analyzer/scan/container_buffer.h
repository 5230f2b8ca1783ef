// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim::scan {

/// Where a member is inflated to: anonymous memory that grows with what arrives, never with what a header
/// announces.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  /// False when there is no memory.
  bool append(Bytes bytes) noexcept;
  /// Ready for the next member. Pages are kept for it unless they are many.
  void clear() noexcept;
  Bytes bytes() const noexcept { return {data_, size_}; }
  std::size_t size() const noexcept { return size_; }

 private:
  bool reserve(std::size_t size) noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace kshim::scan

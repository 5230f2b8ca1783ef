// SPDX-License-Identifier: Apache-2.0
// A copy of a file's beginning. A mapping would raise SIGBUS if another process truncates the file.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim::shim {

class FileCopy {
 public:
  /// Reads up to `most` bytes of a regular file; none if it is anything else.
  FileCopy(const char* path, std::uint64_t most) noexcept;
  ~FileCopy();
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;

  Bytes bytes() const noexcept { return {memory_, read_}; }
  std::uint64_t size() const noexcept { return size_; }  ///< of the file

 private:
  std::byte* memory_ = nullptr;
  std::size_t room_ = 0;
  std::size_t read_ = 0;
  std::uint64_t size_ = 0;
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// Parts of a file, copied where a mapping of it would show them. A mapping itself brings SIGBUS when somebody
// truncates the file meanwhile. What was not fetched, or is not there any more, reads as zero.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim::shim {

class FileCopy {
 public:
  /// Opens a regular file; empty where there is none.
  explicit FileCopy(const char* path) noexcept;
  ~FileCopy();
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;

  Bytes bytes() const noexcept { return {memory_, size_}; }  ///< as long as the file was when it was opened
  /// Reads from `offset` up to `size` bytes, or to the end.
  void fetch(std::uint64_t offset, std::uint64_t size) noexcept;

 private:
  int file_ = -1;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t last_from_ = 0, last_to_ = 0;  ///< what was fetched last
};

}  // namespace kshim::shim

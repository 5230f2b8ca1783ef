// SPDX-License-Identifier: Apache-2.0
// Copies parts of a file to the offsets that a mapping would have. A real mapping raises SIGBUS if another
// process truncates the file. Bytes that were not fetched, or no longer exist, read as zero.
#pragma once
#include <cstdint>

#include "guest/own_file.h"
#include "kshim/base/bytes.h"

namespace kshim::shim {

class FileCopy {
 public:
  /// Opens a regular file; the copy is empty if there is none.
  explicit FileCopy(const char* path) noexcept;
  ~FileCopy();
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;

  Bytes bytes() const noexcept { return {memory_, size_}; }  ///< as long as the file was when it was opened
  /// Reads from `offset` up to `size` bytes, or to the end.
  void fetch(std::uint64_t offset, std::uint64_t size) noexcept;

 private:
  OwnFile file_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t last_from_ = 0, last_to_ = 0;  ///< what was fetched last
};

}  // namespace kshim::shim

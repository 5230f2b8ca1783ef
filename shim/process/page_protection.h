// SPDX-License-Identifier: Apache-2.0
// Makes read-only data of a loaded file writable for a scope.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "process/loaded_elf.h"

namespace kshim::shim {

/// Makes the pages of [begin, end) writable that the file's headers say to be read-only; they are so again at
/// the end of the scope. Fails if the memory is not the file's, is code, or cannot be changed.
class ScopedWritable {
 public:
  ScopedWritable(const LoadedElf& elf, std::uintptr_t begin, std::uintptr_t end) noexcept;
  ~ScopedWritable();
  ScopedWritable(const ScopedWritable&) = delete;
  ScopedWritable& operator=(const ScopedWritable&) = delete;
  explicit operator bool() const noexcept { return refusal_.empty(); }
  std::string_view refusal() const noexcept { return refusal_; }

 private:
  std::uintptr_t first_ = 0;  ///< page
  std::size_t size_ = 0;
  bool give_back_ = false;
  std::string_view refusal_{};
};

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// Makes read-only data writable for a scope.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kshim::shim {

/// Looks for the mapping that holds all of [begin, end) in the text of /proc/PID/maps, fed in pieces of any
/// size.
class MappingSearch {
 public:
  MappingSearch(std::uintptr_t begin, std::uintptr_t end) noexcept : begin_(begin), end_(end) {}
  /// False when no more text is wanted.
  bool feed(std::string_view text) noexcept;
  /// PROT_ bits; nothing where no single private mapping holds the range.
  std::optional<int> rights() const noexcept { return found_; }

 private:
  void finish_line() noexcept;
  std::uintptr_t begin_, end_;
  std::uintptr_t low_ = 0, high_ = 0;
  unsigned column_ = 0;  ///< 0: first address, 1: second, 2: rights, 3: the rest of the line
  unsigned right_ = 0;   ///< how many of the four letters were read
  int bits_ = 0;
  bool private_ = false, done_ = false;
  std::optional<int> found_;
};

/// Makes the pages of [begin, end) writable and restores their protection at the end of the scope. Writable
/// pages are left alone. Fails if the protection cannot be read or changed, or if the pages are executable.
class ScopedWritable {
 public:
  ScopedWritable(std::uintptr_t begin, std::uintptr_t end) noexcept;
  ~ScopedWritable();
  ScopedWritable(const ScopedWritable&) = delete;
  ScopedWritable& operator=(const ScopedWritable&) = delete;
  explicit operator bool() const noexcept { return refusal_.empty(); }
  std::string_view refusal() const noexcept { return refusal_; }

 private:
  std::uintptr_t first_ = 0;  ///< page
  std::size_t size_ = 0;
  int rights_ = -1;  ///< to give back; -1: nothing
  std::string_view refusal_{};
};

}  // namespace kshim::shim

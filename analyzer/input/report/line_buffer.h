// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace kshim::analysis {

/// Collects bytes and hands out lines. Behind the bytes there is always `padding` more that may be read:
/// simdjson looks beyond a line's end.
class LineBuffer {
 public:
  LineBuffer(std::size_t chunk, std::size_t padding) : chunk_(chunk), padding_(padding) {}

  /// Room for one more chunk, without which it grows to twice its size.
  char* room() {
    if (used_ + chunk_ > size_) {
      const std::size_t size = 2 * size_ + chunk_;
      // Zeroed, so that nobody reads what was never written.
      auto bytes = std::make_unique<char[]>(size + padding_);
      if (used_ != 0) std::memcpy(bytes.get(), bytes_.get(), used_);
      bytes_ = std::move(bytes);
      size_ = size;
    }
    return bytes_.get() + used_;
  }
  void filled(std::size_t count) { used_ += count; }
  /// Calls `visit(std::string_view line)` for every whole line; stops at an answer that is not empty and
  /// returns it.
  template <class Visit>
  std::string drain(Visit&& visit) {
    std::size_t begin = 0;
    while (const void* newline = std::memchr(bytes_.get() + searched_, '\n', used_ - searched_)) {
      const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - bytes_.get());
      if (std::string why = visit(std::string_view(bytes_.get() + begin, end - begin)); !why.empty())
        return why;
      begin = searched_ = end + 1;
    }
    if (begin != 0) std::memmove(bytes_.get(), bytes_.get() + begin, used_ - begin);
    used_ -= begin;
    searched_ = used_;
    return {};
  }
  std::string_view rest() const { return {bytes_.get(), used_}; }
  void drop() { used_ = searched_ = 0; }

 private:
  std::size_t chunk_, padding_;
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  std::size_t searched_ = 0;  ///< so far there is no newline
};

}  // namespace kshim::analysis

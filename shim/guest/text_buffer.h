// SPDX-License-Identifier: Apache-2.0
// Text in fixed buffers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::shim {

/// Text assembled in place; what does not fit is cut.
template <std::size_t kSize>
class Text {
 public:
  Text() = default;
  Text& operator<<(std::string_view part) noexcept {
    for (const char character : part)
      if (size_ < kSize) text_[size_++] = character;
    return *this;
  }
  Text& operator<<(std::uint64_t value) noexcept {
    char digits[20];
    std::size_t count = 0;
    do digits[count++] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    while (count != 0) put(digits[--count]);
    return *this;
  }
  void put(char character) noexcept {
    if (size_ < kSize) text_[size_++] = character;
  }
  void shrink(std::size_t size) noexcept { size_ = size < size_ ? size : size_; }
  std::string_view view() const noexcept { return {text_, size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  bool full() const noexcept { return size_ == kSize; }
  const char* c_str() noexcept {
    text_[size_] = 0;
    return text_;
  }

 private:
  char text_[kSize + 1] = {};
  std::size_t size_ = 0;
};

using PathText = Text<4096>;

/// Lower-case hex of at most 20 bytes (a GNU build id).
Text<40> to_hex(Bytes bytes) noexcept;
std::string_view base_name(std::string_view path) noexcept;

/// Copies text into memory that lives as long as the process; empty if there is none left. Lock-free.
std::string_view copy_to_storage(std::string_view text) noexcept;

}  // namespace kshim::shim

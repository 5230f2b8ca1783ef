// SPDX-License-Identifier: Apache-2.0
// What redact.cpp and arguments.cpp share: small functions of libc's kind, without libc.
#pragma once
#include <algorithm>
#include <span>
#include <string_view>

#include "kshim/report/redact.h"

namespace kshim::report {

using Text = std::string_view;

/// Text stored in place: a table of pointers would need relocations in every process that preloads the shim.
struct Word {
  char text[30] = {};
  unsigned char size = 0;
  constexpr Word(const char* from) noexcept {  // NOLINT(google-explicit-constructor): the tables' rows
    while (from[size] != 0) {
      text[size] = from[size];
      ++size;
    }
  }
  constexpr Text view() const noexcept { return {text, size}; }
};
constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr bool is_letter(char c) noexcept { return is_upper(c) || is_lower(c); }
constexpr bool is_alnum(char c) noexcept { return is_letter(c) || is_digit(c); }
constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
constexpr bool is_quote(char c) noexcept { return c == '"' || c == '\'' || c == '`'; }
constexpr bool is_name(char c) noexcept { return is_alnum(c) || c == '_' || c == '-' || c == '.'; }
constexpr char to_lower(char c) noexcept { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_one_of(char c, Text set) noexcept {
  for (const char one : set)
    if (one == c) return true;
  return false;
}
/// string_view::substr without the exception, which would link a function of libstdc++ into the shim.
constexpr Text part_of(Text text, std::size_t start, std::size_t size = Text::npos) noexcept {
  start = std::min(start, text.size());
  return {text.data() + start, std::min(size, text.size() - start)};
}
constexpr bool starts_at(Text text, std::size_t at, Text with) noexcept {
  return part_of(text, at, with.size()) == with;
}
inline bool is_one_of(Text text, std::span<const Word> set) noexcept {
  return std::any_of(set.begin(), set.end(), [text](const Word& one) { return one.view() == text; });
}
/// What a name (an option, a variable, a key, a header) announces.
enum class Announced : std::uint8_t {
  nothing,
  token,  ///< a secret if it looks like one: `key`, `token`, `sig` have other meanings, too
  secret
};
Announced announced_by(Text name) noexcept;
/// A short number, true, none, auto: no value that anybody hides.
bool is_setting(Text value) noexcept;
inline constexpr Word kCredentialOptions[] = {"-u", "-U", "--user", "--proxy-user"};

class Writer {
 public:
  explicit Writer(std::span<char> out) noexcept : out_(out) {}
  Writer& put(Text text) noexcept {
    for (const char c : text) {
      if (result_.size == out_.size()) result_.cut = true;
      if (result_.cut) break;
      out_[result_.size++] = c;
    }
    return *this;
  }
  Redacted done() noexcept {
    if (result_.cut) drop_half_character();
    return result_;
  }

 private:
  void drop_half_character() noexcept {
    for (std::size_t count = 1; count <= 4 && count <= result_.size; ++count) {
      const auto byte = static_cast<unsigned char>(out_[result_.size - count]);
      if ((byte & 0xC0U) == 0x80U) continue;
      const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
      if (length > count) result_.size -= count;
      return;
    }
  }
  std::span<char> out_;
  Redacted result_;
};

}  // namespace kshim::report

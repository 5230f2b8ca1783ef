// SPDX-License-Identifier: Apache-2.0
// Words of PTX text (PTX ISA, "Source Format"): identifiers and directives, numbers, strings, single
// punctuation marks. White space and both kinds of comments are skipped. Never fails: at the end of the text
// the word is empty.
#pragma once
#include <cstddef>
#include <string_view>

namespace kshim::image {

struct PtxWord {
  std::string_view text;  ///< empty at the end of the text
  std::size_t end = 0;    ///< byte offset behind the word
};

class PtxScanner {
 public:
  explicit PtxScanner(std::string_view text, std::size_t at = 0) noexcept : text_(text), at_(at) {}

  PtxWord next() noexcept {
    skip_blank();
    if (at_ >= text_.size()) return {{}, text_.size()};
    const std::size_t start = at_++;
    if (text_[start] == '"') {
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
        at_ += text_[at_] == '\\' ? 2U : 1U;
      at_ = at_ < text_.size() ? at_ + 1 : text_.size();
    } else if (is_word(text_[start])) {
      while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    }
    return {text_.substr(start, at_ - start), at_};
  }
  std::size_t position() const noexcept { return at_; }

  /// After a '{': moves behind its '}'. Ignores braces in strings and comments. Most of a PTX text is skipped
  /// here, so it searches for four characters only and does not split words. False: the text ends first.
  bool skip_block() noexcept {
    for (std::size_t depth = 1; depth != 0;) {
      find_mark();
      if (at_ >= text_.size()) return false;
      const char mark = text_[at_];
      if (mark == '/') {
        const std::size_t here = at_;
        skip_blank();
        if (at_ == here) ++at_;  // no comment
        continue;
      }
      if (mark == '"') {
        next();
        continue;
      }
      ++at_;
      depth += mark == '{' ? 1U : std::size_t{0} - 1;
    }
    return true;
  }
  /// Moves behind the ';' that ends a statement, past initializers in braces.
  void skip_statement() noexcept {
    for (;;) {
      const std::string_view word = next().text;
      if (word.empty() || word == ";") return;
      if (word == "{") skip_block();
    }
  }

 private:
  static constexpr bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
  }
  static constexpr bool is_mark(char c) noexcept { return c == '{' || c == '}' || c == '"' || c == '/'; }
  /// To the next brace, quote or slash: 32 bytes at a time, in a loop that compilers turn into vector
  /// compares.
  void find_mark() noexcept {
    constexpr std::size_t kStep = 32;
    while (text_.size() - at_ >= kStep) {
      const char* block = text_.data() + at_;
      unsigned char any = 0;
      for (std::size_t i = 0; i < kStep; ++i) {
        any = static_cast<unsigned char>(any | (block[i] == '{') | (block[i] == '}') | (block[i] == '"') |
                                         (block[i] == '/'));
      }
      if (any != 0) break;
      at_ += kStep;
    }
    while (at_ < text_.size() && !is_mark(text_[at_])) ++at_;
  }
  static constexpr bool is_blank(char c) noexcept {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
  }
  void skip_blank() noexcept {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        ++at_;
        continue;
      }
      const std::string_view two = text_.substr(at_, 2);
      std::size_t end = 0;
      if (two == "//")
        end = text_.find('\n', at_);
      else if (two == "/*")
        end = text_.find("*/", at_ + 2);
      else
        return;
      at_ = end == std::string_view::npos ? text_.size() : end + (two == "/*" ? 2 : 1);
    }
  }

  std::string_view text_;
  std::size_t at_;
};

}  // namespace kshim::image

// SPDX-License-Identifier: Apache-2.0
// The bytes of a log as lines of UTF-8: what Windows writes is UTF-16, and some files are no text at all.
#pragma once
#include <stdexcept>

#include "analyzer/core/prelude.h"

namespace kshim::input {

/// What was given as a log is none; what() is a clause that says what it is, and what to do.
struct NotALog : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Encoding : std::uint8_t { bytes, utf16le, utf16be };
/// By the byte order mark, or by where the zeros of ordinary letters are.
Encoding encoding_of(std::string_view first_bytes);

class LogText {
 public:
  using Line = std::function<void(std::string_view)>;
  /// `pasted`: words of a person, which are text whatever they begin with.
  explicit LogText(Line line, bool pasted = false) : line_(std::move(line)), begun_(pasted) {}

  /// Throws NotALog by the first bytes.
  void take(std::string_view bytes);
  /// The last line, where no newline ends it.
  void finish();

 private:
  void begin(std::string_view& bytes);
  void decode(std::string_view bytes);
  void unit(std::uint32_t unit);
  void split(std::string_view text);

  Line line_;
  Encoding encoding_ = Encoding::bytes;
  bool begun_ = false;
  char newline_ = '\n';
  std::string rest_;        ///< of a line that has not ended
  std::string text_;        ///< decoded
  int half_ = -1;           ///< first byte of a unit of UTF-16, at the end of a piece
  std::uint32_t high_ = 0;  ///< first half of a surrogate pair
};

}  // namespace kshim::input

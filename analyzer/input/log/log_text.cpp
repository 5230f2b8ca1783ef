// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/log_text.h"

#include "analyzer/core/redacted.h"
#include "analyzer/input/report/report_reader.h"

namespace kshim::input {
namespace {

// A line of many megabytes is read in its beginning; the miner says so.
constexpr std::size_t kMaxKeptLength = std::size_t{512} << 10;
constexpr std::size_t kLook = 4096;
constexpr std::uint32_t kReplacement = 0xfffd;

using namespace std::string_view_literals;
constexpr std::string_view kMarkLe = "\xff\xfe"sv;
constexpr std::string_view kMarkBe = "\xfe\xff"sv;
constexpr std::string_view kMarkUtf8 = "\xef\xbb\xbf"sv;

void append_utf8(std::uint32_t point, std::string& out) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0U | (point >> 6U));
    put(0x80U | (point & 0x3fU));
  } else if (point < 0x10000) {
    put(0xe0U | (point >> 12U));
    put(0x80U | ((point >> 6U) & 0x3fU));
    put(0x80U | (point & 0x3fU));
  } else {
    put(0xf0U | (point >> 18U));
    put(0x80U | ((point >> 12U) & 0x3fU));
    put(0x80U | ((point >> 6U) & 0x3fU));
    put(0x80U | (point & 0x3fU));
  }
}

// Neither text nor UTF-16: control characters that no terminal is sent. Zeros alone are what a log has that
// was cut while it was written to.
bool is_binary(std::string_view first) {
  const auto odd = std::count_if(first.begin(), first.end(), [](unsigned char c) {
    return (c >= 1 && c < 7) || (c >= 14 && c < 27) || (c > 27 && c < 32);
  });
  constexpr std::ptrdiff_t kPart = 16;
  return odd > 8 && odd > static_cast<std::ptrdiff_t>(first.size()) / kPart;
}

}  // namespace

Encoding encoding_of(std::string_view first) {
  if (first.starts_with(kMarkLe)) return Encoding::utf16le;
  if (first.starts_with(kMarkBe)) return Encoding::utf16be;
  first = first.substr(0, kLook);
  // Letters of UTF-16 that are ASCII have a zero beside them, always on the same side.
  std::size_t zeros[2] = {0, 0};
  std::size_t letters[2] = {0, 0};
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == '\0') ++zeros[i % 2];
    if (first[i] >= ' ' && first[i] < 0x7f) ++letters[i % 2];
  }
  const std::size_t half = first.size() / 2;
  if (half == 0) return Encoding::bytes;
  const auto mostly = [&](std::size_t zero) {
    return zeros[zero] * 2 >= half && letters[1 - zero] * 2 >= half && zeros[1 - zero] * 8 < half;
  };
  if (mostly(1)) return Encoding::utf16le;
  if (mostly(0)) return Encoding::utf16be;
  return Encoding::bytes;
}

void LogText::begin(std::string_view& bytes) {
  begun_ = true;
  encoding_ = encoding_of(bytes);
  if (encoding_ != Encoding::bytes) {
    if (bytes.starts_with(kMarkLe) || bytes.starts_with(kMarkBe)) bytes.remove_prefix(2);
    return;
  }
  if (std::string what = foreign_file(bytes); !what.empty()) throw NotALog(what);
  if (is_binary(bytes.substr(0, kLook))) throw NotALog("is no text");
  if (bytes.starts_with(kMarkUtf8)) bytes.remove_prefix(kMarkUtf8.size());
  // As a terminal's copy has it: lines that end with a carriage return alone.
  const bool returns =
      bytes.find('\n') == std::string_view::npos && bytes.find('\r') != std::string_view::npos;
  if (returns) newline_ = '\r';
}

void LogText::take(std::string_view bytes) {
  if (bytes.empty()) return;
  if (!begun_) begin(bytes);
  if (encoding_ == Encoding::bytes) return split(bytes);
  text_.clear();
  decode(bytes);
  split(text_);
}

void LogText::decode(std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (half_ < 0) {
      half_ = byte;
      continue;
    }
    const auto first = static_cast<std::uint32_t>(half_);
    half_ = -1;
    unit(encoding_ == Encoding::utf16le ? first | (std::uint32_t{byte} << 8U) : (first << 8U) | byte);
  }
}

// RFC 2781: two units of D800 to DFFF are one character; one alone is none.
void LogText::unit(std::uint32_t unit) {
  const bool low = unit >= 0xdc00 && unit < 0xe000;
  if (high_ != 0) {
    const std::uint32_t high = high_;
    high_ = 0;
    if (low) return append_utf8(0x10000 + ((high - 0xd800) << 10U) + (unit - 0xdc00), text_);
    append_utf8(kReplacement, text_);
  }
  if (unit >= 0xd800 && unit < 0xdc00) {
    high_ = unit;
  } else {
    append_utf8(low ? kReplacement : unit, text_);
  }
}

void LogText::split(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find(newline_);
    if (rest_.size() < kMaxKeptLength) rest_.append(text.substr(0, end));
    if (end == std::string_view::npos) return;
    line_(core::redacted(rest_, report::Content::text));
    rest_.clear();
    text.remove_prefix(end + 1);
  }
}

void LogText::finish() {
  if (!rest_.empty()) line_(core::redacted(rest_, report::Content::text));
  rest_.clear();
}

}  // namespace kshim::input

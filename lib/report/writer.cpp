// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace kshim::report {
namespace {

/// Length of the UTF-8 sequence that starts at `text[at]`, or 0 where there is none (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return !overlong && !surrogate && follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return !overlong && !beyond && follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

constinit const Person* g_hidden = nullptr;

/// Bytes that JSON takes as they are.
constexpr auto kPlain = [] {
  std::array<bool, 256> plain{};
  for (unsigned byte = 0x20; byte < 0x7F; ++byte) plain[byte] = byte != '"' && byte != '\\';
  return plain;
}();

}  // namespace

void hide(const Person* person) noexcept { g_hidden = person; }

void JsonBuffer::put(char character) noexcept {
  if (full_ || size_ >= storage_.size()) {
    full_ = true;
    return;
  }
  storage_[size_++] = character;
}

void JsonBuffer::text(std::string_view raw) noexcept {
  if (full_ || raw.size() > room()) {
    full_ = true;
    return;
  }
  std::memcpy(storage_.data() + size_, raw.data(), raw.size());
  size_ += raw.size();
}

void JsonBuffer::string(std::string_view value, Content content, std::size_t limit) noexcept {
  if (value.data() == nullptr) return text("null");
  put('"');
  RedactedPieces pieces(value, content, g_hidden);
  for (std::string_view piece; pieces.next(piece);) {
    if (!escaped(piece, limit)) break;
    limit -= std::min(limit, piece.size());
  }
  put('"');
}

void JsonBuffer::own_string(std::string_view value, std::size_t limit) noexcept {
  if (value.data() == nullptr) return text("null");
  put('"');
  escaped(value, limit);
  put('"');
}

bool JsonBuffer::escaped(std::string_view value, std::size_t limit) noexcept {
  const std::size_t end = std::min(value.size(), limit);
  for (std::size_t at = 0; at < value.size();) {
    // Characters that need no escape, in one piece.
    std::size_t plain = at;
    while (plain < end && kPlain[static_cast<unsigned char>(value[plain])]) ++plain;
    if (plain != at) {
      text(value.substr(at, plain - at));
      at = plain;
      continue;
    }
    const std::size_t length = utf8_length(value, at);
    if (at + (length == 0 ? 1 : length) > limit) {
      text("...");
      return false;
    }
    const char character = value[at];
    if (length == 0) {
      text("\\ufffd");
    } else if (length > 1) {
      text(value.substr(at, length));
    } else if (character == '"' || character == '\\') {
      put('\\');
      put(character);
    } else if (static_cast<unsigned char>(character) < 0x20 || character == 0x7F) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto code = static_cast<unsigned char>(character);
      const char code_text[] = {'\\', 'u', '0', '0', kHex[code >> 4U], kHex[code & 15U]};
      text({code_text, sizeof code_text});
    } else {
      put(character);
    }
    at += length == 0 ? 1 : length;
  }
  return true;
}

void JsonBuffer::number(std::uint64_t value) noexcept {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text({digits, static_cast<std::size_t>(end - digits)});
}

// By hand: std::to_chars for floating point lives in libstdc++.so, which the shim must not need.
void JsonBuffer::milliseconds(Milliseconds value) noexcept {
  const std::uint64_t micros = value.nanoseconds / 1000;
  number(micros / 1000);
  const auto digit = [](std::uint64_t n) { return static_cast<char>('0' + n % 10); };
  const char fraction[] = {'.', digit(micros / 100), digit(micros / 10), digit(micros)};
  text({fraction, sizeof fraction});
}

namespace {
void member(JsonBuffer& out, std::string_view lead, std::string_view value) noexcept {
  out.text(lead);
  out.string(value, Content::identifier, kElementStringLimit);
}
void member(JsonBuffer& out, std::string_view lead, std::uint64_t value) noexcept {
  out.text(lead);
  out.number(value);
}
}  // namespace

void write_element(JsonBuffer& out, std::string_view row, Content content) noexcept {
  out.string(row, content, kElementStringLimit);
}

void write_element(JsonBuffer& out, const ImageRow& row) noexcept {
  member(out, "{\"kind\":", row.kind);
  member(out, ",\"arch\":", row.arch);
  member(out, ",\"isa\":", row.isa);
  member(out, ",\"count\":", row.count);
  member(out, ",\"bytes\":", row.bytes);
  out.text("}");
}

void write_element(JsonBuffer& out, const LayerRow& row) noexcept {
  member(out, "{\"layer\":", row.layer);
  member(out, ",\"api\":", row.api);
  member(out, ",\"code\":", row.code);
  member(out, ",\"name\":", row.name);
  out.text("}");
}

void write_element(JsonBuffer& out, const FrameRow& row) noexcept {
  member(out, "{\"object\":", row.object);
  member(out, ",\"build_id\":", row.build_id);
  member(out, ",\"offset\":", row.offset);
  member(out, ",\"symbol\":", row.symbol);
  out.text("}");
}

void write_element(JsonBuffer& out, const PythonRow& row) noexcept {
  member(out, "{\"file\":", row.file);
  if (row.line != 0)
    member(out, ",\"line\":", row.line);
  else
    out.text(",\"line\":null");
  member(out, ",\"function\":", row.function);
  out.text("}");
}

void write_element(JsonBuffer& out, const ProcessRow& row) noexcept {
  member(out, "{\"pid\":", row.pid);
  member(out, ",\"start\":", row.start);
  member(out, ",\"exe\":", row.exe);
  out.text("}");
}

void write_env(JsonBuffer& out, std::span<const EnvRow> rows) noexcept {
  out.text("{");
  bool first = true;
  for (const EnvRow& row : rows) {
    const std::size_t before = out.size();
    if (!first) out.text(",");
    out.string(row.name, Content::identifier, kElementStringLimit);
    out.text(":");
    out.string(row.value, Content::text, kElementStringLimit);
    if (out.full() || out.room() < kTailRoom) {
      out.rewind(before);
      break;
    }
    first = false;
  }
  out.text("}");
}

}  // namespace kshim::report

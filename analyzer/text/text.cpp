// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/text.h"

#include <cxxabi.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace kshim::analysis {
namespace {

// Length in bytes of the UTF-8 sequence that `lead` begins; 1 for what begins none.
std::size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0) return 4;
  if (lead >= 0xE0) return 3;
  return lead >= 0xC0 ? 2 : 1;
}

bool is_dangerous(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F || byte(0) >= 0x80;
  if (sequence.size() == 2) return byte(0) == 0xC2 && byte(1) < 0xA0;  // C1 controls
  if (sequence.size() != 3) return false;
  // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
  if (byte(0) != 0xE2) return false;
  if (byte(1) == 0x80) return byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xA8 && byte(2) <= 0xAE);
  return byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::min(sequence_length(static_cast<unsigned char>(text[at])), text.size() - at);
    const std::string_view sequence = text.substr(at, length);
    if (is_dangerous(sequence)) {
      out += '?';
    } else {
      out += sequence;
    }
    at += length;
  }
  return out;
}

std::string tail(std::string_view text, std::size_t width) {
  std::string clean = harmless(text);
  if (clean.size() <= width || width < 4) return clean;
  std::size_t begin = clean.size() - (width - 3);
  while (begin < clean.size() && (static_cast<unsigned char>(clean[begin]) & 0xC0) == 0x80) ++begin;
  const std::size_t slash = clean.find('/', begin);
  if (slash != std::string::npos && slash - begin < width / 2) begin = slash;
  return "..." + clean.substr(begin);
}

std::string demangle(std::string_view symbol) {
  if (!symbol.starts_with("_Z") || symbol.size() > 65536) return std::string(symbol);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && name ? std::string(name.get()) : std::string(symbol);
}

std::string join(const std::vector<std::string>& items, std::string_view separator) {
  std::string out;
  for (const std::string& item : items) {
    if (!out.empty()) out += separator;
    out += item;
  }
  return out;
}

std::string enumerate(const std::vector<std::string>& items) {
  if (items.size() < 2) return join(items, "");
  const std::vector<std::string> head(items.begin(), items.end() - 1);
  return fmt::format("{} and {}", join(head, ", "), items.back());
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string fill(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::size_t length = columns(word);
    if (!out.empty()) {
      if (column + 1 + length > width) {
        out += '\n';
        out.append(indent, ' ');
        column = indent;
      } else {
        out += ' ';
        ++column;
      }
    }
    out += word;
    column += length;
  }
  return out;
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,+:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string_view basename_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace kshim::analysis

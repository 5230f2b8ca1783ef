// SPDX-License-Identifier: Apache-2.0
#include "modules/ptx_initial.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

namespace kshim::sim {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// `.u32` before the name: letter and bytes of one element.
struct Element {
  char letter = 'b';
  std::size_t bytes = 0;
};
Element element_before(std::string_view text) noexcept {
  text = trimmed(text);
  const std::size_t dot = text.find_last_of('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view type = text.substr(dot + 1);
  const std::size_t digits = type.find_first_of("0123456789");
  unsigned bits = 0;
  if (digits == 0 || digits == std::string_view::npos) return {};
  std::from_chars(type.data() + digits, type.data() + type.size(), bits);
  return {type.front(), bits / 8};
}

/// The bits of one constant, for an element of that type.
std::uint64_t bits_of(std::string_view word, Element element) noexcept {
  const bool negative = word.starts_with('-');
  if (negative) word.remove_prefix(1);
  if (word.ends_with('U')) word.remove_suffix(1);
  const auto has_prefix = [&](char letter) {
    return word.size() > 2 && word[0] == '0' && (word[1] | 0x20) == letter;
  };
  std::uint64_t value = 0;
  if (has_prefix('x') || has_prefix('f') || has_prefix('d')) {
    std::from_chars(word.data() + 2, word.data() + word.size(), value, 16);
    if (!has_prefix('f') || element.bytes != 8) return negative ? ~value + 1 : value;
    // A single-precision constant in a double-precision variable.
    return std::bit_cast<std::uint64_t>(double{std::bit_cast<float>(static_cast<std::uint32_t>(value))});
  }
  if (element.letter == 'f') {
    double number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    if (negative) number = -number;
    if (element.bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(number));
    return element.bytes == 8 ? std::bit_cast<std::uint64_t>(number) : 0;
  }
  std::from_chars(word.data(), word.data() + word.size(), value, word.starts_with('0') ? 8 : 10);
  return negative ? ~value + 1 : value;
}

}  // namespace

std::vector<std::byte> initial_contents(std::string_view ptx, const image::GlobalInfo& global) {
  const auto name_at = static_cast<std::size_t>(global.name.data() - ptx.data());
  const Element element = element_before(ptx.substr(0, name_at));
  std::string_view rest = ptx.substr(name_at + global.name.size());
  rest = rest.substr(0, rest.find(';'));
  const std::size_t equals = rest.find('=');
  if (equals == std::string_view::npos || element.bytes == 0 || element.bytes > sizeof(std::uint64_t))
    return {};
  rest = rest.substr(equals + 1);
  std::vector<std::byte> out(static_cast<std::size_t>(global.size));
  std::size_t at = 0;
  while (!rest.empty() && at + element.bytes <= out.size()) {
    const std::size_t end = rest.find_first_of(",{}");
    const std::string_view word = trimmed(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    if (word.empty()) continue;
    const std::uint64_t bits = bits_of(word, element);
    std::memcpy(out.data() + at, &bits, element.bytes);
    at += element.bytes;
  }
  return out;
}

}  // namespace kshim::sim

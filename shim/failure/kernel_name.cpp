// SPDX-License-Identifier: Apache-2.0
#include "failure/kernel_name.h"

#include "guest/slices.h"
#include "guest/text_buffer.h"

namespace kshim::shim {
namespace {

/// <source-name> ::= <length> <identifier> (Itanium C++ ABI, 5.1.3); empty where there is none.
std::string_view parse_source_name(std::string_view& rest) noexcept {
  std::size_t length = 0;
  std::size_t digits = 0;
  for (; digits < rest.size() && digits < 5 && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
    length = length * 10 + static_cast<std::size_t>(rest[digits] - '0');
  if (length == 0 || length > rest.size() - digits) return {};
  const std::string_view name = part_of(rest, digits, length);
  rest.remove_prefix(digits + length);
  return name;
}

}  // namespace

Text<256> short_kernel_name(std::string_view mangled) noexcept {
  constexpr std::string_view kPrefix = "_Z";
  Text<256> whole;
  whole << mangled;
  if (!mangled.starts_with(kPrefix)) return whole;
  std::string_view rest = part_of(mangled, kPrefix.size());
  const bool nested = rest.starts_with('N');
  if (nested) rest.remove_prefix(1);
  // Static functions carry an L in front of their name.
  Text<256> out;
  for (;;) {
    if (rest.starts_with('L')) rest.remove_prefix(1);
    const std::string_view name = parse_source_name(rest);
    if (name.empty()) break;
    if (!out.empty()) out << "::";
    out << (name.starts_with("_GLOBAL__N_") ? "(anonymous namespace)" : name);
    if (!nested) break;
  }
  if (out.empty()) return whole;
  if (rest.starts_with('I')) out << "<...>";
  return out;
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "guest/selection.h"

#include <algorithm>
#include <span>

#include "guest/clock.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

/// Greedy, with one place to go back to: the last `*`.
bool matches(std::string_view pattern, std::string_view text) noexcept {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t at = 0, in = 0, star = kNone, resume = 0;
  while (in < text.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = in;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[in])) {
      ++at, ++in;
    } else if (star != kNone) {
      at = star + 1;
      in = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == kNone;
}

}  // namespace

bool is_program_watched(std::string_view patterns, std::string_view executable) noexcept {
  bool any_positive = false;
  bool matched = false;
  bool watched = false;
  while (!patterns.empty()) {
    const std::size_t end = std::min(patterns.find(';'), patterns.size());
    std::string_view pattern = patterns.substr(0, end);
    patterns.remove_prefix(std::min(end + 1, patterns.size()));
    while (pattern.starts_with(' ')) pattern.remove_prefix(1);
    while (pattern.ends_with(' ')) pattern.remove_suffix(1);
    const bool negative = pattern.starts_with('!');
    if (negative) pattern.remove_prefix(1);
    if (pattern.empty()) continue;
    any_positive = any_positive || !negative;
    if (!matches(pattern, pattern.find('/') == std::string_view::npos ? base_name(executable) : executable))
      continue;
    matched = true;
    watched = !negative;
  }
  return matched ? watched : !any_positive;
}

bool is_chosen(std::uint64_t sample) noexcept {
  const std::uint64_t seed[] = {now_nanoseconds(), raw::process()};
  return sample <= 1 || key_hash(std::as_bytes(std::span(seed)), kHashSeed) % sample == 0;
}

}  // namespace kshim::shim

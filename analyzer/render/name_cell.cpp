// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/name_cell.h"

#include <algorithm>
#include <array>
#include <map>

namespace kshim::analysis {
namespace {

constexpr std::string_view kGap = "...";
constexpr std::string_view kSeparators = "/!";
constexpr std::size_t kLongestEnding = 6;
// Hostile names could agree in all but one letter, again and again.
constexpr unsigned kRounds = 6;

struct Range {
  char32_t first;
  char32_t last;
};

// UAX #11, the blocks that are wide or full width throughout or nearly so.
constexpr std::array<Range, 13> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x4DBF},
                                          {0x4E00, 0xA4CF},
                                          {0xA960, 0xA97F},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0xFFE0, 0xFFE6},
                                          {0x1F300, 0x1F64F},
                                          {0x1F900, 0x1F9FF},
                                          {0x20000, 0x3FFFD}}};
// Combining marks and variation selectors.
constexpr std::array<Range, 6> kNone = {{{0x0300, 0x036F},
                                         {0x1AB0, 0x1AFF},
                                         {0x20D0, 0x20FF},
                                         {0x3099, 0x309A},
                                         {0xFE00, 0xFE0F},
                                         {0xFE20, 0xFE2F}}};

template <std::size_t kSize>
bool within(const std::array<Range, kSize>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The bytes of the character at `at`, at least 1.
std::size_t length_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && continues(text[end])) ++end;
  return end - at;
}

std::size_t columns_at(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  if (length == 1 || length > 4) return 1;
  char32_t c = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) c = c << 6 | (byte(i) & 0x3F);
  return within(kNone, c) ? 0 : within(kWide, c) ? 2 : 1;
}

/// As many whole characters from the end as fit.
std::string_view last_columns(std::string_view text, std::size_t width) {
  std::size_t begin = text.size();
  for (std::size_t used = 0; begin > 0;) {
    std::size_t at = begin - 1;
    while (at > 0 && continues(text[at])) --at;
    used += columns_at(text, at, begin - at);
    if (used > width) break;
    begin = at;
  }
  return text.substr(begin);
}

std::string_view first_columns(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t used = 0; end < text.size();) {
    const std::size_t length = length_at(text, end);
    used += columns_at(text, end, length);
    if (used > width) break;
    end += length;
  }
  return text.substr(0, end);
}

/// ".so" of a name, without its point; empty where that is long.
std::string_view ending_of(std::string_view name) {
  const std::size_t point = name.rfind('.');
  if (point == std::string_view::npos || name.size() - point > kLongestEnding) return {};
  return name.substr(point + 1);
}

std::string from_end(std::string_view name, std::size_t width) {
  std::string_view kept = last_columns(name, width - kGap.size());
  const std::size_t slash = kept.find('/');
  if (slash != std::string_view::npos && slash < width / 2) kept.remove_prefix(slash);
  return std::string(kGap) + std::string(kept);
}

/// `name` up to `end`, of that as much as fits, and its ending.
std::string up_to(std::string_view name, std::size_t end, std::size_t width) {
  const std::string_view ending = ending_of(name);
  const std::size_t room = width - 2 * kGap.size() - ending.size();
  const std::size_t word = name.find_first_of("./!", end);
  const bool whole_word = word != std::string_view::npos && (word <= room || word - end <= room / 2);
  if (whole_word) end = word;
  while (end < name.size() && continues(name[end])) ++end;
  std::string out;
  if (terminal_columns(name.substr(0, end)) > room) {
    out += kGap;
    out += last_columns(name.substr(0, end), room);
  } else {
    out += whole_word ? name.substr(0, end) : first_columns(name, room);
  }
  out += kGap;
  return out += ending;
}

std::string first_cut(std::string_view name, std::size_t width) {
  const std::string text = from_end(name, width);
  if (text.find_first_of(kSeparators) != std::string::npos) return text;
  // Not even the file's own name fits: its first word says more than "-x86_64-linux-gnu.so".
  const std::size_t slash = name.find_last_of(kSeparators);
  const std::size_t point = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
  return point == std::string_view::npos ? text : up_to(name, point, width);
}

std::size_t common_ending(const std::vector<std::string>& names, const std::vector<std::size_t>& group) {
  std::size_t shared = names[group.front()].size();
  for (const std::size_t i : group) {
    const std::string& first = names[group.front()];
    const auto ends = std::mismatch(first.rbegin(), first.rbegin() + static_cast<std::ptrdiff_t>(shared),
                                    names[i].rbegin(), names[i].rend());
    shared = static_cast<std::size_t>(ends.first - first.rbegin());
  }
  return shared;
}

}  // namespace

std::size_t terminal_columns(std::string_view text) {
  std::size_t out = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = length_at(text, at);
    out += columns_at(text, at, length);
    at += length;
  }
  return out;
}

std::vector<std::string> name_cells(const std::vector<std::string>& names, std::size_t width) {
  std::vector<std::string> cells;
  std::vector<std::size_t> open;  // cut, and perhaps as others are
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool fits = terminal_columns(names[i]) <= width;
    cells.push_back(fits ? names[i] : first_cut(names[i], width));
    if (!fits) open.push_back(i);
  }
  for (unsigned round = 0; round < kRounds && !open.empty(); ++round) {
    std::map<std::string, std::vector<std::size_t>> same;
    for (const std::size_t i : open) same[cells[i]].push_back(i);
    open.clear();
    for (const auto& cut : same) {
      const std::vector<std::size_t>& group = cut.second;
      const bool differ =
          std::any_of(group.begin(), group.end(), [&](std::size_t i) { return names[i] != names[group[0]]; });
      if (!differ) continue;
      const std::size_t shared = common_ending(names, group);
      for (const std::size_t i : group) cells[i] = up_to(names[i], names[i].size() - shared, width);
      open.insert(open.end(), group.begin(), group.end());
    }
  }
  return cells;
}

}  // namespace kshim::analysis

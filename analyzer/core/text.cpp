// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/text.h"

#include <numeric>

namespace kshim::core {
namespace {

// Controls, and what is invisible or turns the direction of writing: general categories Cc and Cf of Unicode
// 15, Zl and Zp, the soft hyphen excepted, and the letters among its Default_Ignorable_Code_Points (fillers
// of Hangul and the like), which are shown as nothing. Variation selectors stay. And bytes that are not a
// character: XML 1.0 cannot hold U+FFFE and U+FFFF.
bool is_dangerous(char32_t code) {
  constexpr CharacterRange kRanges[] = {
      {0x0000, 0x001F}, {0x007F, 0x009F},   {0x034F, 0x034F},  {0x0600, 0x0605}, {0x061C, 0x061C},
      {0x115F, 0x1160}, {0x17B4, 0x17B5},   {0x180E, 0x180E},  {0x200B, 0x200F}, {0x2028, 0x202E},
      {0x2060, 0x206F}, {0x3164, 0x3164},   {0xFDD0, 0xFDEF},  {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0},
      {0xFFF9, 0xFFFB}, {0x1D173, 0x1D17A}, {0xE0000, 0xE007F}};
  return (code & 0xFFFEU) == 0xFFFE || is_within(kRanges, code);  // the last two of each plane
}

// cuDNN, libcudart.so.12, nvcc, KSHIM_LOG=debug: names keep their letters at the head of a sentence too.
bool begins_with_name(std::string_view text) {
  static constexpr std::string_view kNames[] = {"conda", "cubin", "cudart",   "kshim", "libcuda", "nvcc",
                                                "pip",   "ptxas", "nvdisasm", "torch", "vllm"};
  std::string_view word = text.substr(0, text.find(' '));
  while (!word.empty() && contains(",.:;!?)", word.back())) word.remove_suffix(1);
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || c == '\''; };
  return !std::ranges::all_of(word, is_plain) || contains(kNames, word);
}

}  // namespace

bool is_within(std::span<const CharacterRange> ranges, char32_t code) {
  return std::ranges::any_of(
      ranges, [code](const CharacterRange& range) { return range.first <= code && code <= range.second; });
}

Decoded decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {code, length};
}

std::string sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    // Printable ASCII, which nearly all of it is, as it stands.
    const auto plain = std::find_if(text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; });
    const auto length = static_cast<std::size_t>(plain - text.begin());
    out += text.substr(0, length);
    text.remove_prefix(length);
    if (text.empty()) break;
    const Decoded next = decode(text);
    out += next.length == 0 || is_dangerous(next.code) ? "?" : text.substr(0, next.length);
    text.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return out;
}

std::string utf8_of(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode(text);
    out += next.length != 0 ? text.substr(0, next.length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(std::max<std::size_t>(next.length, 1));
  }
  return out;
}

std::string ascii(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : sanitize(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 || byte >= 0xC0) out += byte < 0x80 ? c : '?';
  }
  return out;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
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

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 9.95 ? 1 : 0, kUnits[unit]);
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},     {"B", 1},   {"k", 1e3},  {"kB", 1e3},   {"KB", 1e3},      {"K", 1e3},         {"M", 1e6},
      {"MB", 1e6}, {"G", 1e9}, {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
  constexpr double kMost = 1e15;
  const auto whole = take_number<std::uint64_t>(text);
  if (!whole) return std::nullopt;
  auto number = static_cast<double>(*whole);
  if (text.starts_with('.'))
    for (double place = 0.1; text.remove_prefix(1), !text.empty() && is_digit(text.front()); place /= 10)
      number += place * (text.front() - '0');
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto* unit = std::ranges::find(kUnits, text, [](const auto& row) { return row.first; });
  if (unit == std::end(kUnits) || number * unit->second > kMost) return std::nullopt;
  return static_cast<std::uint64_t>(number * unit->second);
}

std::string hex(Bytes bytes) {
  std::string out;
  for (const std::byte byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return out;
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
    const bool breaks = !out.empty() && column + 1 + columns(word) > width;
    if (breaks) out.append(1, '\n').append(column = indent, ' ');
    if (!breaks && !out.empty()) out += ' ', ++column;
    out += word;
    column += columns(word);
  }
  return out;
}

std::string shell_quote(std::string_view word) {
  // At a word's start zsh expands =, PowerShell @ and %, old fish %; a comma is an operator of PowerShell's.
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=+:@%";
  constexpr std::string_view kNotFirst = "=@%";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos &&
                     kNotFirst.find(word.front()) == std::string_view::npos;
  if (plain) return std::string(word);
  // All four take what stands between single quotes as it is, but for these: fish has escapes there (\\ and
  // \\'), and each shell writes a quote in quotes in its own way. PowerShell takes U+2018 to U+201B for
  // quotes, too.
  constexpr std::string_view kQuotes = "\xe2\x80\x98\xe2\x80\x99\xe2\x80\x9a\xe2\x80\x9b";
  bool quotable = word.find_first_of("'\\") == std::string_view::npos;
  for (const char c : word) quotable = quotable && static_cast<unsigned char>(c) >= ' ' && c != '\x7f';
  for (std::size_t at = 0; at < kQuotes.size(); at += 3)
    quotable = quotable && word.find(kQuotes.substr(at, 3)) == std::string_view::npos;
  return quotable ? "'" + std::string(word) + "'" : std::string(1, kNoShellWord);
}

std::string_view basename_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string no_command(std::string line) {
  // Blanks of Unicode are blanks to the runner; nothing beyond ASCII is looked at.
  const auto first = std::find_if(line.begin(), line.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  const auto begin = static_cast<std::size_t>(first - line.begin());
  if (line.compare(begin, 2, "::") == 0) line.insert(begin + 1, " ");
  for (std::size_t at = line.find("##["); at != std::string::npos; at = line.find("##[", at))
    line.insert(at + 2, " ");
  return line;
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 4) + (word.size() > 3 ? 1 : 0);
  std::string_view best;
  std::size_t least = limit + 1;
  for (const std::string_view each : known) {
    const bool begins = word.size() > 1 && each.starts_with(word);
    const std::size_t far = begins ? 0 : edit_distance(word, each, limit);
    if (far == least && each != best) best = {};
    if (far >= least) continue;
    least = far;
    best = each;
  }
  return least <= limit ? std::string(best) : std::string();
}

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<std::size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t j = 1; j <= b.size(); ++j) {
    std::size_t corner = row[0];
    row[0] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? corner : corner + 1;
      corner = row[i];
      row[i] = std::min({cost, row[i] + 1, row[i - 1] + 1});
    }
  }
  return row.back();
}

std::string as_sentence(std::string text) {
  if (text.empty()) return text;
  if (text.front() >= 'a' && text.front() <= 'z' && !begins_with_name(text))
    text.front() = static_cast<char>(text.front() - 'a' + 'A');
  if (text.back() != '.' && text.back() != '!' && text.back() != '?') text += '.';
  return text;
}

namespace {

/// `holes`: where it is set whether a word is empty that may not be.
std::string expand(std::string_view text, const TemplateWords& words, bool& holes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('{'), text.size());
    out += text.substr(0, open);
    text.remove_prefix(open);
    if (text.empty()) break;
    const std::size_t close = std::min(text.find('}'), text.size() - 1);
    std::string_view word = text.substr(1, close - 1);
    const bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    const auto found = std::ranges::find(words, word, &TemplateWords::value_type::first);
    // A quoted word that is empty is empty, too.
    if (found != words.end() && !optional) holes |= found->second.empty() || found->second == "''";
    out += found == words.end() ? text.substr(0, 1) : found->second;
    text.remove_prefix(found == words.end() ? 1 : close + 1);
  }
  return out;
}

}  // namespace

std::string expand(std::string_view text, const TemplateWords& words) {
  bool ignored = false;
  return expand(text, words, ignored);
}

std::string expand_filled(std::string_view text, const TemplateWords& words) {
  bool holes = false;
  std::string out = expand(text, words, holes);
  return holes ? std::string() : out;
}

bool asks_for(std::string_view text, std::string_view word) {
  return contains(text, fmt::format("{{{}}}", word)) || contains(text, fmt::format("{{{}?}}", word));
}

std::string escape_markup(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEntities[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string out;
  out.reserve(text.size());
  bool begin = true;  // of a line, blanks and what may be one aside
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto* entity = std::ranges::find(kEntities, c, [](const auto& row) { return row.first; });
    if (entity != std::end(kEntities)) {
      out += entity->second;
    } else if ((c == ':' && begin && text.substr(i, 2) == "::") || (c == '#' && text.substr(i, 3) == "##[")) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
    begin = c == '\n' || (begin && (c <= ' ' || c == '\x7f'));
  }
  return out;
}

std::string file_uri(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    if (contains(kPlain, c))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace kshim::core

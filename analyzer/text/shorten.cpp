// SPDX-License-Identifier: Apache-2.0
// Demangled names of templates fill screens. What is cut here is what a reader skips anyway.
#include <algorithm>
#include <array>
#include <utility>

#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

void erase_all(std::string& text, std::string_view what, std::string_view by = "") {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// Position behind the bracket that closes the one at `open`; npos where the text is not balanced.
std::size_t behind_closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    // `operator->`, `operator>` and `->` are not closing brackets.
    const bool arrow = c == '>' && at > 0 && text[at - 1] == '-';
    if ((c == '>' && !arrow) || c == ')' || c == ']' || c == '}') {
      if (--depth == 0) return at + 1;
    }
  }
  return std::string_view::npos;
}

// The demangler writes the return type of a template function: `void saxpy<float>(int, ...)`.
void drop_return_type(std::string& text) {
  int depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '<') ++depth;
    if (c == '>' && at > 0 && text[at - 1] != '-') --depth;
    if (c == '(' && depth == 0) return;
    if (c == ' ' && depth == 0 && text.compare(0, 8, "operator") != 0) {
      const std::string_view rest = std::string_view(text).substr(at + 1);
      if (rest.find('(') != std::string_view::npos && rest.substr(0, 1) != "(") text.erase(0, at + 1);
      return;
    }
  }
}

// Folds `open ... close` groups that stand `depth` groups deep, longest first, until the text fits.
void fold(std::string& text, char open, std::string_view folded, int depth, std::size_t width) {
  while (text.size() > width) {
    std::size_t best = std::string::npos;
    std::size_t best_length = folded.size() + 4;
    int level = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const bool arrow = text[at] == '>' && at > 0 && text[at - 1] == '-';
      if (text[at] == (open == '<' ? '>' : ')') && !arrow) --level;
      if (text[at] != open) continue;
      if (level++ != depth) continue;
      const std::size_t end = behind_closing(text, at);
      if (end == std::string::npos) return;
      if (end - at > best_length) {
        best = at;
        best_length = end - at;
      }
    }
    if (best == std::string::npos) return;
    text.replace(best, best_length, folded);
  }
}

}  // namespace

std::string shorten(std::string_view demangled, std::size_t width) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSpellings = {{
      {"(anonymous namespace)::", ""},
      {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
      {"unsigned int", "unsigned"},
      {" >", ">"},
  }};
  std::string text = harmless(demangled);
  for (const auto& [from, to] : kSpellings) erase_all(text, from, to);
  drop_return_type(text);
  // Parameters tell least, then the arguments of template arguments.
  fold(text, '(', "(...)", 0, width);
  fold(text, '<', "<...>", 1, width);
  fold(text, '<', "<...>", 0, width);
  if (text.size() > width && width > 3) {
    text.resize(width - 3);
    text += "...";
  }
  return text;
}

std::string base_name(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t begin = 0;
  std::size_t end = std::string_view::npos;  // where the name's own template arguments start
  int depth = 0;
  std::size_t at = 0;
  for (; at < demangled.size(); ++at) {
    const char c = demangled[at];
    if (depth == 0 && demangled.substr(at).starts_with(kAnonymous)) {
      at += kAnonymous.size() - 1;
    } else if (c == '<') {
      if (depth++ == 0) end = at;
    } else if (c == '>') {
      depth = std::max(depth - 1, 0);
    } else if (depth == 0 && c == '(') {
      break;
    } else if (depth == 0 && (c == ' ' || c == ':')) {
      begin = at + 1;
      end = std::string_view::npos;
    }
  }
  end = std::min(end, at);
  return std::string(demangled.substr(begin, end - begin));
}

}  // namespace kshim::analysis

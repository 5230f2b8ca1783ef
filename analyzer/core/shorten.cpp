// SPDX-License-Identifier: Apache-2.0
// Demangled names of templates fill screens. What is cut here is what a reader skips anyway.
#include "analyzer/core/text.h"

namespace kshim::core {
namespace {

// Kernel names come from files that anyone may have made: every step below takes time in proportion to the
// text.
void replace_all(std::string& text, std::string_view what, std::string_view by) {
  std::size_t at = text.find(what);
  if (at == std::string::npos) return;
  std::string out;
  std::size_t done = 0;
  for (; at != std::string::npos; at = text.find(what, done)) {
    out.append(text, done, at - done).append(by);
    done = at + what.size();
  }
  text = out.append(text, done);
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

struct Group {
  std::size_t begin = 0;
  std::size_t size = 0;
};

// The `open ... close` groups that stand `depth` groups deep and are longer than `least`, in order and apart
// from each other. None where one has no end.
std::vector<Group> groups(std::string_view text, char open, int depth, std::size_t least) {
  const char close = open == '<' ? '>' : ')';
  std::vector<Group> found;
  std::size_t seen = 0;  // what the group before took in is not looked at again
  int level = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool arrow = text[at] == '>' && at > 0 && text[at - 1] == '-';
    if (text[at] == close && !arrow) --level;
    if (text[at] != open || level++ != depth || at < seen) continue;
    seen = behind_closing(text, at);
    if (seen == std::string_view::npos) return {};
    if (seen - at > least) found.push_back({at, seen - at});
  }
  return found;
}

// Folds such groups, longest first, until the text fits.
void fold(std::string& text, char open, std::string_view folded, int depth, std::size_t width) {
  if (text.size() <= width) return;
  std::vector<Group> chosen = groups(text, open, depth, folded.size() + 4);
  std::ranges::stable_sort(chosen, [](Group a, Group b) { return a.size > b.size; });
  std::size_t size = text.size();
  std::size_t count = 0;
  while (count < chosen.size() && size > width) size -= chosen[count++].size - folded.size();
  chosen.resize(count);
  std::ranges::sort(chosen, [](Group a, Group b) { return a.begin < b.begin; });
  std::string out;
  std::size_t done = 0;
  for (const Group& group : chosen) {
    out.append(text, done, group.begin - done).append(folded);
    done = group.begin + group.size;
  }
  text = out.append(text, done);
}

}  // namespace

std::string shorten(std::string_view demangled, std::size_t width) {
  constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {"(anonymous namespace)::", ""},
      {"std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"},
      {"unsigned int", "unsigned"},
      {" >", ">"},
  };
  std::string text = sanitize(demangled);
  for (const auto& [from, to] : kSpellings) replace_all(text, from, to);
  drop_return_type(text);
  // Parameters tell least, then the arguments of template arguments.
  fold(text, '(', "(...)", 0, width);
  fold(text, '<', "<...>", 1, width);
  fold(text, '<', "<...>", 0, width);
  if (text.size() > width && width > 3) {
    std::size_t end = width - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
    text.resize(end);
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

}  // namespace kshim::core

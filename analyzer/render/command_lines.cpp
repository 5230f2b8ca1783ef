// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/command_lines.h"

#include <algorithm>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

// The words of a command, split at blanks outside of quotes.
std::vector<std::string_view> shell_words(std::string_view command) {
  std::vector<std::string_view> words;
  char quote = '\0';
  std::size_t begin = 0;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char c = command[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == ' ') {
      if (at > begin) words.push_back(command.substr(begin, at - begin));
      begin = at + 1;
    }
  }
  if (begin < command.size()) words.push_back(command.substr(begin));
  return words;
}

bool begins_part(std::string_view word) { return word.starts_with('-') || word == "|" || word == "||"; }

class Breaker {
 public:
  Breaker(std::size_t width, std::size_t hang) : width_(width), hang_(hang) {}

  // An option and its values, kept together where they fit on one line.
  void part(const std::vector<std::string_view>& words) {
    std::size_t whole = words.size() - 1;
    for (const std::string_view word : words) whole += columns(word);
    if (whole <= width_ - hang_ - kBackslash) {
      std::string text;
      for (const std::string_view word : words) text.append(text.empty() ? "" : " ").append(word);
      add(text);
      return;
    }
    for (const std::string_view word : words) add(word);
  }
  std::vector<CommandLine> take() && { return std::move(lines_); }

 private:
  static constexpr std::size_t kBackslash = 2;  // with the blank before it

  void add(std::string_view text) {
    if (lines_.empty() || lines_.back().text.ends_with(" &&")) {
      lines_.push_back({std::string(text), false});
      return;
    }
    const std::size_t room = width_ - (lines_.back().continues ? hang_ : 0);
    if (text != "&&" && columns(lines_.back().text) + 1 + columns(text) + kBackslash > room) {
      lines_.back().text += " \\";
      lines_.push_back({std::string(text), true});
    } else {
      lines_.back().text.append(" ").append(text);
    }
  }

  std::size_t width_;
  std::size_t hang_;
  std::vector<CommandLine> lines_;
};

}  // namespace

std::vector<CommandLine> break_command(std::string_view command, std::size_t width, std::size_t hang) {
  if (columns(command) <= width) return {{std::string(command), false}};
  Breaker breaker(width, hang);
  std::vector<std::string_view> part;
  bool closed = true;
  for (const std::string_view word : shell_words(command)) {
    const bool joint = word == "&&";
    if (!part.empty() && (closed || joint || begins_part(word))) {
      breaker.part(part);
      part.clear();
    }
    part.push_back(word);
    closed = joint;
  }
  if (!part.empty()) breaker.part(part);
  return std::move(breaker).take();
}

}  // namespace kshim::analysis

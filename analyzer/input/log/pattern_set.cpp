// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/pattern_set.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace kshim::input {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Reads a pattern for required_texts().
class LiteralExtractor {
 public:
  explicit LiteralExtractor(std::string_view pattern) : pattern_(pattern) {}

  /// Up to the end of the group that is open, or of the pattern.
  RequiredLiterals alternatives() {
    RequiredLiterals all = sequence();
    if (next() != '|') return all;
    // One of several: any of the best text of each, where each has one.
    AnyOf any;
    bool each_has_one = true;
    for (;; all = sequence()) {
      const auto best = std::ranges::max_element(all, {}, shortest);
      each_has_one = each_has_one && best != all.end();
      if (best != all.end()) any.insert(any.end(), best->begin(), best->end());
      if (next() != '|') break;
      ++at_;
    }
    return each_has_one ? RequiredLiterals{std::move(any)} : RequiredLiterals();
  }

 private:
  static std::size_t shortest(const AnyOf& texts) {
    return std::ranges::min(texts, {}, &std::string::size).size();
  }
  char next(std::size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool at_end() const { return at_ >= pattern_.size() || next() == ')'; }

  RequiredLiterals sequence() {
    RequiredLiterals out;
    std::string text;
    const auto end_text = [&] {
      if (!text.empty()) out.push_back({std::exchange(text, {})});
    };
    while (!at_end() && next() != '|') {
      const char c = next();
      if (c == '(') {
        end_text();
        RequiredLiterals inside = group();
        if (!may_be_missing()) std::ranges::move(inside, std::back_inserter(out));
      } else if (c == '[') {
        end_text();
        skip_class();
      } else if (c == '\\' && std::isalnum(static_cast<unsigned char>(next(1))) != 0) {
        end_text();  // a class or an assertion
        at_ += 2;
      } else if (c == '.' || c == '^' || c == '$' || c == '+' || static_cast<unsigned char>(c) >= 0x80) {
        end_text();
        ++at_;
      } else if (may_be_missing()) {
        if (!text.empty()) text.pop_back();
        end_text();
      } else {
        if (c == '\\') ++at_;
        text += lower(next());
        ++at_;
      }
    }
    end_text();
    return out;
  }

  RequiredLiterals group() {
    ++at_;
    if (next() == '?')  // (?: (?i) (?-i: (?P<name>
      while (!at_end() && next() != ':' && next() != '>') ++at_;
    if (next() == ':' || next() == '>') ++at_;
    RequiredLiterals out = alternatives();
    ++at_;
    return out;
  }

  void skip_class() {
    at_ += next(1) == '^' ? 2U : 1U;
    if (next() == ']') ++at_;
    for (; at_ < pattern_.size() && next() != ']'; ++at_)
      if (next() == '\\') ++at_;
    ++at_;
  }

  /// Passes what repeats the thing before. "{2,}" is taken for one that may be missing, too.
  bool may_be_missing() {
    const char c = next();
    if (c != '?' && c != '*' && c != '{') return false;
    at_ = c == '{' ? std::min(pattern_.find('}', at_), pattern_.size() - 1) + 1 : at_ + 1;
    return true;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
};

/// "a|b(?:c|d)": a, b(?:c|d).
std::vector<std::string_view> alternatives_of(std::string_view pattern) {
  std::vector<std::string_view> out;
  std::size_t from = 0;
  int depth = 0;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '\\') {
      ++at;
    } else if (in_class) {
      in_class = c != ']';
    } else if (c == '[') {
      in_class = true;
      if (pattern.substr(at + 1).starts_with('^')) ++at;
      if (pattern.substr(at + 1).starts_with(']')) ++at;
    } else if (c == '(' || c == ')') {
      depth += c == '(' ? 1 : -1;
    } else if (c == '|' && depth == 0) {
      out.push_back(pattern.substr(from, at - from));
      from = at + 1;
    }
  }
  out.push_back(pattern.substr(from));
  return out;
}

// Literals are looked up by their first two letters; a shorter one makes every line a candidate.
constexpr std::size_t kPrefix = 2;

std::size_t bucket_of(const char* letters) {
  const auto at = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(letters[i])}; };
  return at(0) << 8U | at(1);
}

}  // namespace

RequiredLiterals required_texts(std::string_view pattern) { return LiteralExtractor(pattern).alternatives(); }

std::uint32_t LiteralIndex::literal(const std::string& text) {
  if (first_.empty()) first_.assign(std::size_t{1} << 16U, kNone);
  std::uint32_t& first = first_[bucket_of(text.data())];
  for (std::uint32_t at = first; at != kNone; at = literals_[at].next)
    if (literals_[at].text == text) return at;
  literals_.push_back({text, {}, first, text.size() > kPrefix ? text[kPrefix] : '\0'});
  first = static_cast<std::uint32_t>(literals_.size() - 1);
  return first;
}

int LiteralIndex::add(const RequiredLiterals& literals) {
  const int pattern = size();
  Pattern& added = patterns_.emplace_back();
  for (const AnyOf& any : literals) {
    if (std::ranges::any_of(any, [](const std::string& text) { return text.size() < kPrefix; })) continue;
    ++added.required;
    alternatives_.push_back({pattern});
    for (const std::string& text : any)
      literals_[literal(text)].any_of.push_back(static_cast<std::uint32_t>(alternatives_.size() - 1));
  }
  if (added.required == 0) unconditional_.push_back(pattern);
  return pattern;
}

void LiteralIndex::candidates(std::string_view line, std::vector<int>& found) {
  ++lines_;
  found = unconditional_;
  for (std::size_t at = 0; at + kPrefix <= line.size() && !first_.empty(); ++at) {
    const char third = at + kPrefix < line.size() ? line[at + kPrefix] : '\0';
    for (std::uint32_t i = first_[bucket_of(line.data() + at)]; i != kNone; i = literals_[i].next) {
      Literal& literal = literals_[i];
      if (literal.third != '\0' && literal.third != third) continue;
      if (literal.seen == lines_ || !line.substr(at).starts_with(literal.text)) continue;
      literal.seen = lines_;
      for (const std::uint32_t any : literal.any_of) {
        if (std::exchange(alternatives_[any].seen, lines_) == lines_) continue;
        Pattern& pattern = patterns_[static_cast<std::size_t>(alternatives_[any].pattern)];
        if (std::exchange(pattern.seen, lines_) != lines_) pattern.missing = pattern.required;
        if (--pattern.missing == 0) found.push_back(alternatives_[any].pattern);
      }
    }
  }
  std::ranges::sort(found);
}

PatternSet::PatternSet() {
  options_.set_case_sensitive(false);
  options_.set_log_errors(false);
  // Logs are of any encoding: bytes, not code points.
  options_.set_encoding(RE2::Options::EncodingLatin1);
}

int PatternSet::add(std::string_view pattern) {
  const int index = size();
  for (const std::string_view each : alternatives_of(pattern)) {
    index_.add(required_texts(each));
    alternatives_.push_back({std::string(each), index, nullptr});
  }
  single_.push_back({std::string(pattern), index, nullptr});
  return index;
}

const RE2& PatternSet::compiled(Single& single) const {
  if (!single.compiled) single.compiled = std::make_unique<RE2>(single.pattern, options_);
  if (!single.compiled->ok())
    throw std::logic_error("a pattern of kshim explain is wrong: " + single.pattern + ": " +
                           single.compiled->error());
  return *single.compiled;
}

void PatternSet::match(std::string_view line, std::vector<int>& found) const {
  lower_.resize(line.size());
  std::ranges::transform(line, lower_.begin(), lower);
  index_.candidates(lower_, candidates_);
  found.clear();
  for (const int candidate : candidates_) {
    Single& each = alternatives_[static_cast<std::size_t>(candidate)];
    if ((found.empty() || found.back() != each.of) && RE2::PartialMatch(piece(line), compiled(each)))
      found.push_back(each.of);
  }
}

std::string PatternSet::first_group(int index, std::string_view line) const {
  const auto all = groups(index, line);
  return all.size() > 1 ? all[1] : std::string();
}

std::vector<std::string> PatternSet::groups(int index, std::string_view line) const {
  std::size_t from = 0;
  return next_groups(index, line, from);
}

std::vector<std::string> PatternSet::next_groups(int index, std::string_view line, std::size_t& from) const {
  const RE2& pattern = single(index);
  std::vector<re2::StringPiece> parts(static_cast<std::size_t>(pattern.NumberOfCapturingGroups()) + 1);
  if (from > line.size() || !pattern.Match(piece(line), from, line.size(), RE2::UNANCHORED, parts.data(),
                                           static_cast<int>(parts.size())))
    return {};
  from = static_cast<std::size_t>(parts[0].data() - line.data()) + parts[0].size();
  std::vector<std::string> out;
  out.reserve(parts.size());
  for (const re2::StringPiece& part : parts)
    out.emplace_back(part.data() != nullptr ? part.data() : "", part.size());
  return out;
}

std::map<std::string, std::string> PatternSet::named_groups(int index, std::string_view line) const {
  std::map<std::string, std::string> out;
  const auto all = groups(index, line);
  if (all.empty()) return out;
  out.emplace("", all.front());
  for (const auto& [name, number] : single(index).NamedCapturingGroups()) {
    if (const std::string& text = all[static_cast<std::size_t>(number)]; !text.empty())
      out.emplace(name, text);
  }
  return out;
}

}  // namespace kshim::input

// SPDX-License-Identifier: Apache-2.0
// Many regular expressions over one line at once. RE2: its time is linear in the text whatever a log holds.
#pragma once
#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::input {

/// Alternatives, in lower case: a match holds at least one of them.
using AnyOf = std::vector<std::string>;
/// A match holds an alternative of each.
using RequiredLiterals = std::vector<AnyOf>;

/// What every match of a pattern holds: the plain characters outside of classes and repetitions. Not all of
/// it, and nothing where one of several alternatives has none.
RequiredLiterals required_texts(std::string_view pattern);

/// Which patterns have all their required literals in a line: one pass over the line, whatever their number.
class LiteralIndex {
 public:
  /// The index of the pattern.
  int add(const RequiredLiterals& literals);
  int size() const { return static_cast<int>(patterns_.size()); }
  /// Into `found`, ascending. `line` is in lower case.
  void candidates(std::string_view line, std::vector<int>& found);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Literal {
    std::string text;
    std::vector<std::uint32_t> any_of;  ///< groups of alternatives that hold it
    std::uint32_t next = kNone;         ///< literal with the same first letters
    char third = '\0';                  ///< the letter behind these; '\0' where there is none
    std::uint64_t seen = 0;             ///< number of the last line that had it
  };
  struct Alternatives {
    int pattern = 0;
    std::uint64_t seen = 0;
  };
  struct Pattern {
    int required = 0;  ///< groups of alternatives
    int missing = 0;   ///< of them, in the line at hand
    std::uint64_t seen = 0;
  };
  std::uint32_t literal(const std::string& text);

  std::vector<Literal> literals_;
  std::vector<Alternatives> alternatives_;
  std::vector<Pattern> patterns_;
  std::vector<std::uint32_t> first_;  ///< literal, by its first letters
  std::vector<int> unconditional_;    ///< patterns that require no literal
  std::uint64_t lines_ = 0;
};

class PatternSet {
 public:
  PatternSet();
  /// The index of the pattern.
  int add(std::string_view pattern);
  int size() const { return static_cast<int>(single_.size()); }
  /// Indices of the patterns that occur in `line`, ascending, into `found`.
  void match(std::string_view line, std::vector<int>& found) const;
  /// The text of the first group of pattern `index`, "" where it has none.
  std::string first_group(int index, std::string_view line) const;
  /// All groups by number, [0] the whole match; empty where it does not match after all.
  std::vector<std::string> groups(int index, std::string_view line) const;
  /// The same from byte `from` on, which is set behind the match.
  std::vector<std::string> next_groups(int index, std::string_view line, std::size_t& from) const;
  /// Named groups that took part in the match, and "" for the whole match.
  std::map<std::string, std::string> named_groups(int index, std::string_view line) const;

 private:
  RE2::Options options_;
  /// A pattern, compiled on first use: few logs have the literals of more than a handful.
  struct Single {
    std::string pattern;
    int of = 0;  ///< an alternative: index of its pattern
    std::unique_ptr<RE2> compiled;
  };
  const RE2& compiled(Single& single) const;
  const RE2& single(int index) const { return compiled(single_[static_cast<std::size_t>(index)]); }
  mutable std::vector<Single> single_;
  /// What tells whether a pattern matches: of a long one, a line has the literals of one or two.
  mutable std::vector<Single> alternatives_;
  mutable LiteralIndex index_;  ///< of the alternatives
  mutable std::string lower_;   ///< the line at hand
  mutable std::vector<int> candidates_;
};

}  // namespace kshim::input

// SPDX-License-Identifier: Apache-2.0
// Many regular expressions over one line at once. RE2: its time is linear in the text whatever a log holds.
#pragma once
#include <re2/re2.h>
#include <re2/set.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::explain {

class PatternSet {
 public:
  PatternSet();
  /// The index of the pattern. All must be added before compile().
  int add(std::string_view pattern);
  void compile();
  int size() const { return static_cast<int>(single_.size()); }
  /// Indices of the patterns that occur in `line`, ascending, into `found`.
  void match(std::string_view line, std::vector<int>& found) const;
  /// The text of the first group of pattern `index`, "" where it has none.
  std::string first_group(int index, std::string_view line) const;
  /// All groups by number, [0] the whole match; empty where it does not match after all.
  std::vector<std::string> groups(int index, std::string_view line) const;
  /// The same from byte `from` on, which is set behind the match.
  std::vector<std::string> next_groups(int index, std::string_view line, std::size_t& from) const;
  /// Where its first match begins.
  std::size_t position(int index, std::string_view line) const;
  /// Named groups that took part in the match, and "" for the whole match.
  std::map<std::string, std::string> named_groups(int index, std::string_view line) const;

 private:
  RE2::Options options_;
  std::unique_ptr<RE2::Set> set_;
  /// One pattern for itself: compiled once a line has it, as hardly any log has many of them.
  struct Single {
    std::string pattern;
    std::unique_ptr<RE2> compiled;
  };
  const RE2& single(int index) const;
  mutable std::vector<Single> single_;
};

}  // namespace kshim::explain

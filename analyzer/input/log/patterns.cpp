// SPDX-License-Identifier: Apache-2.0
#include "analyzer/input/log/patterns.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

namespace kshim::explain {
namespace {

// The automaton of all patterns grows with what lines show it; beyond this RE2 starts it anew.
constexpr std::int64_t kMemory = std::int64_t{64} << 20;

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

PatternSet::PatternSet() {
  options_.set_case_sensitive(false);
  options_.set_log_errors(false);
  // Logs are of any encoding: bytes, not code points.
  options_.set_encoding(RE2::Options::EncodingLatin1);
  RE2::Options many = options_;
  many.set_max_mem(kMemory);
  set_ = std::make_unique<RE2::Set>(many, RE2::UNANCHORED);
}

int PatternSet::add(std::string_view pattern) {
  std::string error;
  if (set_->Add(piece(pattern), &error) != size())
    throw std::logic_error("a pattern of kshim explain is wrong: " + std::string(pattern) + ": " + error);
  single_.push_back({std::string(pattern), nullptr});
  return size() - 1;
}

const RE2& PatternSet::single(int index) const {
  Single& found = single_[static_cast<std::size_t>(index)];
  if (!found.compiled) found.compiled = std::make_unique<RE2>(found.pattern, options_);
  return *found.compiled;
}

void PatternSet::compile() {
  if (!set_->Compile()) throw std::logic_error("the patterns of kshim explain do not compile");
}

void PatternSet::match(std::string_view line, std::vector<int>& found) const {
  found.clear();
  set_->Match(piece(line), &found);
  std::sort(found.begin(), found.end());
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

std::size_t PatternSet::position(int index, std::string_view line) const {
  re2::StringPiece whole;
  if (!single(index).Match(piece(line), 0, line.size(), RE2::UNANCHORED, &whole, 1)) return 0;
  return static_cast<std::size_t>(whole.data() - line.data());
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

}  // namespace kshim::explain

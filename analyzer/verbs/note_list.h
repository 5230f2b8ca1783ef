// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kshim::analysis {

/// Notes of many reports: what is said of several is said once, with the first place and how many there are.
class NoteList {
 public:
  /// `place`: "r.jsonl:7".
  void add(std::string place, std::string text);
  void take(std::vector<std::string>& out);

 private:
  struct Row {
    std::string place, text;
    std::uint64_t more = 0;
  };
  std::vector<Row> rows_;
  std::uint64_t others_ = 0;
};

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// The findings of all reports, each once, and in which processes it was seen. Found by a hash: a thousand
// ranks with a hundred findings each are no square of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/core/finding.h"

namespace kshim::analysis {

/// That a finding was seen in a process, by its place in the list of processes, and how often.
struct Sighting {
  std::uint32_t process = 0;
  std::uint64_t count = 0;
};

class FindingTable {
 public:
  void add(Finding&& finding, std::optional<std::uint32_t> process);

  struct Row {
    Finding finding;
    std::vector<Sighting> seen;   ///< by process, ascending
    std::uint64_t processes = 0;  ///< of `seen` and of those that had no room there
    std::size_t weight = 0;       ///< bytes of its texts
  };
  std::vector<Row>& rows() { return rows_; }
  /// Findings for which there was no room.
  std::uint64_t left_out() const { return left_out_; }

 private:
  void see(Row& row, std::optional<std::uint32_t> process, std::uint64_t count);

  std::vector<Row> rows_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::size_t weight_ = 0;
  std::size_t sightings_ = 0;
  std::size_t quiet_ = 0;  ///< rows that are no errors
  std::uint64_t left_out_ = 0;
};

}  // namespace kshim::analysis

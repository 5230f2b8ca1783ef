// SPDX-License-Identifier: Apache-2.0
// The processes of all reports: which run each belongs to, where each ran, and in which of them a finding was
// seen.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/finding_table.h"

namespace kshim::analysis {

class Processes {
 public:
  explicit Processes(Analysis& out) : out_(out) {}

  /// The process's place in Analysis::processes; nullopt where there is no room for it, and it is only
  /// counted.
  std::optional<std::uint32_t> add(const Report& report, std::uint64_t loads);
  /// Fills Analysis::runs.
  void summarise_runs();
  /// In which processes the finding of the row was seen, and what tells them from the others.
  void describe(const FindingTable::Row& row, Finding& finding);
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct Facts {
    std::uint32_t run = 0;
    std::string gpus;    ///< "8.6": compute capabilities, each once
    std::string driver;  ///< "13.0"
  };
  struct Run {
    std::string id;
    std::vector<std::uint32_t> processes;
  };
  std::uint32_t run_of(const Report& report);
  void tell_apart(const Run& run, const std::vector<bool>& seen, Finding& finding) const;

  Analysis& out_;
  std::vector<Facts> facts_;  ///< beside Analysis::processes
  std::vector<Run> runs_;
  std::map<std::string, std::uint32_t> run_by_id_;
  std::size_t weight_ = 0;
  std::size_t described_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace kshim::analysis

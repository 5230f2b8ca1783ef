// SPDX-License-Identifier: Apache-2.0
// The processes of all reports: which run each belongs to, where each ran, and in which of them a finding was
// seen.
#pragma once

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

/// That a finding was seen in a process, by its place in the list of processes, and how often.
struct Sighting {
  std::uint32_t process = 0;
  std::uint64_t count = 0;
};

/// The findings of all reports, each once, and in which processes it was seen. Found by a hash: a thousand
/// ranks with a hundred findings each are no square of them.
class FindingTable {
 public:
  void add(core::Finding&& finding, std::optional<std::uint32_t> process);

  struct Row {
    core::Finding finding;
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

/// The run that a report belongs to; empty where nothing says so.
std::string run_id(const input::Report& report);
/// Fills in what tells a process from others: its report, host, number, program. The size of the arguments in
/// bytes.
std::size_t identify(const input::Report& report, ProcessSummary& process);

class Processes {
 public:
  explicit Processes(Analysis& out) : out_(out) {}

  /// The process's place in Analysis::processes; nullopt where there is no room for it, and it is only
  /// counted.
  std::optional<std::uint32_t> add(const input::Report& report, std::uint64_t loads);
  /// Fills Analysis::runs.
  void summarize_runs();
  /// In which processes the finding of the row was seen, and what tells them from the others.
  void describe(const FindingTable::Row& row, core::Finding& finding);
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct Facts {
    std::uint32_t run = 0;
    std::string gpus;    ///< "8.6": compute capabilities, each once
    std::string driver;  ///< "13.0"
    std::string host;
  };
  struct Run {
    std::string id;
    std::vector<std::uint32_t> processes;
  };
  std::uint32_t run_of(const input::Report& report);
  void tell_apart(const Run& run, const std::vector<bool>& seen, core::Finding& finding) const;

  Analysis& out_;
  std::vector<Facts> facts_;  ///< beside Analysis::processes
  std::vector<Run> runs_;
  std::map<std::string, std::uint32_t> run_by_id_;
  std::size_t weight_ = 0;
  std::size_t described_ = 0;
  std::uint64_t left_out_ = 0;
};

/// "0-7, 12": ascending, each once.
std::string ranges_text(std::vector<std::uint64_t> numbers);
/// "1,024".
std::string grouped_number(std::uint64_t number);

struct RunMember {
  std::string_view host;
  std::optional<std::uint64_t> rank;
  std::uint64_t pid = 0;
};
/// Which members of one run that has `all`: "ranks 0-7 on node01, 8-15 on node02 (16 of
/// 32)", "all 8 ranks on node01", "rank 3 only, on node02 (1 of 8)"; by process ids where one of `some` has
/// no rank or all have the same.
std::string members_text(const std::vector<RunMember>& some, const std::vector<RunMember>& all);

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

}  // namespace kshim::verbs

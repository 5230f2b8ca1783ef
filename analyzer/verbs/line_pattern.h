// SPDX-License-Identifier: Apache-2.0
// A line of JSON with places for what each process has for itself: its report, host, process id, times. Ranks
// of a job and jobs of a program have all else in common, which is judged and rendered once.
#pragma once

#include "analyzer/input/report/alike.h"
#include "analyzer/verbs/report_facts.h"

namespace kshim::verbs {

/// Makes a line of an analysis, whose newline is its last character.
struct LineMaker {
  std::function<std::string(const Analysis&)> line;
  std::function<std::vector<std::string>(const std::vector<std::string>&)> arguments;  ///< as a line has them
};

/// The modules of each sentence that says how long they took together, by their order in the report.
class Durations {
 public:
  /// What the sentence has until a line is filled.
  std::string operator()(std::span<const std::uint32_t> modules);
  const std::vector<std::vector<std::uint32_t>>& modules() const { return modules_; }

 private:
  std::vector<std::vector<std::uint32_t>> modules_;
};

class LinePattern {
 public:
  /// `analysis`: of a report that was judged with `durations`, and its facts.
  LinePattern(const Analysis& analysis, const Durations& durations, const LineMaker& maker);
  /// The line of a process that is like it. `report`: its process record at least.
  std::string fill(const input::Report& report, const ReportFile& file, const input::Alike& own,
                   const LineMaker& maker) const;
  std::size_t weight() const;

 private:
  struct Piece {
    std::string text;       ///< before the value
    std::size_t place = 0;  ///< of the value
    bool inside = false;    ///< another text
  };
  std::vector<Piece> pieces_;
  std::string rest_;
  std::vector<std::size_t> load_of_;
  std::size_t loads_ = 0;
  std::vector<std::vector<std::uint32_t>> durations_;
};

}  // namespace kshim::verbs

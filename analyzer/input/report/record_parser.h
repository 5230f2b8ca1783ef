// SPDX-License-Identifier: Apache-2.0
// One JSON object after the other into the records that their `type` names.
#pragma once
#include <simdjson.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/input/report/fields.h"
#include "analyzer/input/report/limits.h"
#include "analyzer/input/report/report.h"

namespace kshim::analysis {

class RecordParser {
 public:
  /// `expands_home`: `~` of a private report becomes the caller's home folder.
  RecordParser(Report& report, bool expands_home) : report_(report), expands_home_(expands_home) {}

  /// Adds the record to the report. A type that is not known is ignored: newer shims may write more. The
  /// answer is empty, or says what is odd about the line.
  std::string parse(simdjson::dom::object from, std::uint32_t line);
  /// After the last line: notes on what was left out and on records that contradict each other. `skipped`:
  /// lines that could not be read.
  void finish(std::uint64_t skipped);

 private:
  struct Kept {
    std::size_t records = 0;
    std::size_t bytes = 0;
    std::uint64_t left_out = 0;
  };
  std::string process(const Fields& from, std::uint32_t line);
  std::string driver(const Fields& from, std::uint32_t line);
  std::string device(const Fields& from, std::uint32_t line);
  std::string object(const Fields& from, std::uint32_t line);
  std::string module(const Fields& from, std::uint32_t line);
  std::string failure(const Fields& from, std::uint32_t line);
  std::string repeat(const Fields& from, std::uint32_t line);
  std::string read(const Fields& from, std::uint32_t line);
  std::string gap(const Fields& from, std::uint32_t line);
  std::string library(const Fields& from, std::uint32_t line);
  std::string bypass(const Fields& from, std::uint32_t line);
  std::string package(const Fields& from, std::uint32_t line);
  std::string coverage(const Fields& from, std::uint32_t line);
  std::string compiler(const Fields& from, std::uint32_t line);
  std::string child(const Fields& from, std::uint32_t line);
  std::string end(const Fields& from, std::uint32_t line);

  /// False where there is no room for one more; then it is counted as left out.
  bool full(report::RecordType type);
  template <report::RecordType kType, class T>
  bool keep(std::vector<T>& list, T&& record);
  Kept& kept(report::RecordType type) { return kept_[static_cast<std::size_t>(type)]; }
  std::uint64_t left_out(report::RecordType type) { return kept(type).left_out; }
  void note(std::string text, std::uint32_t line = 0);
  void count(const Fields& from);
  void note_left_out();
  void note_missing(std::uint64_t skipped);

  Report& report_;
  bool expands_home_;
  std::string home_;  ///< what `~` in the report stands for
  std::array<Kept, static_cast<std::size_t>(report::RecordType::end) + 1> kept_{};
  std::unordered_set<std::uint64_t> objects_, modules_;      ///< ids
  std::unordered_map<std::uint64_t, std::size_t> failures_;  ///< by id
  std::unordered_map<std::uint64_t, std::size_t> coverage_;  ///< by a hash of what tells kernels apart
  std::uint64_t records_ = 0;
  std::uint64_t after_end_ = 0;
  std::optional<std::uint64_t> seq_;  ///< the highest so far
  bool unordered_ = false;
};

// What in a report cannot be as it says: records that refer to nothing, GPUs and drivers that do not exist.

/// Which kinds of records were all kept: only then can one be missing.
struct Whole {
  bool objects = true;
  bool modules = true;
  bool devices = true;
  bool failures = true;
};
/// Adds a note for each kind of contradiction, with the first line of it, and what `end` counts beyond what
/// is there to Report::missing.
void check_report(Report& report, Whole whole);

}  // namespace kshim::analysis

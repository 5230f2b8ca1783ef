// SPDX-License-Identifier: Apache-2.0
// Compilers in processes of their own that failed (ptxas, tileiras, nvcc, cicc, nvlink): what each was asked,
// put together with the processes above it, which may have reports of their own.
#pragma once

#include "analyzer/diagnose/facts.h"
#include "analyzer/input/report/report_index.h"
#include "analyzer/verbs/processes.h"

namespace kshim::verbs {

class CompilerFailures {
 public:
  CompilerFailures(const diagnose::AnalysisOptions& options, const diagnose::RunFacts& run,
                   input::ObjectFiles& files, NoteList& notes)
      : options_(options), run_(run), files_(files), notes_(notes) {}
  /// Keeps what the report says of its own failure as a compiler. `process`: its place in the list.
  void note(const input::Report& report, std::optional<std::uint32_t> process);
  /// Once all reports were read: a finding for each compiler that does not know what it was asked for.
  void judge(FindingTable& findings);

 private:
  using Process = std::tuple<std::string, std::uint64_t, std::uint64_t>;  ///< host, pid, start
  struct Failure {
    input::Report report;  ///< of its records only those about the process and the compiler
    std::optional<std::uint32_t> process;
  };
  std::optional<core::Finding> finding_of(const Failure& failure);
  static const input::ProcessEntry* starter_of(const input::Report& report);
  std::string software_above(const input::Report& report) const;
  std::string selecting_variable(const input::Report& report, const std::string& software) const;
  void find_other(const input::Report& report, diagnose::CompilerFacts& facts) const;

  const diagnose::AnalysisOptions& options_;
  const diagnose::RunFacts& run_;
  input::ObjectFiles& files_;
  NoteList& notes_;
  std::vector<Failure> failures_;
  std::map<Process, std::string> software_;  ///< triton, jax, cuda-tile
};

}  // namespace kshim::verbs

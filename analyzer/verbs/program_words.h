// SPDX-License-Identifier: Apache-2.0
// What a program said when it failed, beside what its reports show: one failure that both tell of is one
// finding.
#pragma once

#include "analyzer/input/log/clues.h"
#include "analyzer/input/report/report.h"
#include "analyzer/owner/package.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

class ProgramWords {
 public:
  explicit ProgramWords(const diagnose::RunFacts& run) : run_(run) {}

  /// What a report knows, and a line need not say: GPUs, driver, environment.
  void learn(const input::Report& report);
  /// Adds what was said to the findings. `used`: a process used a kernel.
  void judge(bool used, input::ObjectFiles& files, std::vector<core::Finding>& findings);
  /// Analysis::needs_module.
  const std::string& needs_module() const { return needs_module_; }
  /// What ended a program that people take for CUDA's failure.
  const std::optional<OtherAnswer>& other_failure() const { return other_failure_; }

 private:
  const diagnose::RunFacts& run_;
  bool failed_ = false;  ///< the process whose facts these are
  std::vector<input::DeviceMention> devices_;
  bool simulated_ = false;
  image::Version driver_;
  std::string kernel_module_;
  std::map<std::string, std::string> env_;
  owner::PythonEnvironment python_env_;
  std::string program_;
  std::set<int> codes_;  ///< that calls of any process returned
  std::string needs_module_;
  std::optional<OtherAnswer> other_failure_;
  std::set<std::string> mapped_;  ///< CUDA libraries that were loaded
  std::string unsearched_folder(const input::LogMatch& hit) const;
  unsigned cuda_of_asking() const;
  bool add_refusing_file(const input::LogMatch& line, input::ObjectFiles& files, core::Finding& said,
                         diagnose::Facts& at) const;
};

}  // namespace kshim::verbs

// SPDX-License-Identifier: Apache-2.0
// The driver's error log as a witness of processes that the shim is not in, from the file that CUDA_LOG_FILE
// names, or from reports of libkshim-injection.so: what it says there becomes the records that a shim would
// have written.
#pragma once

#include "analyzer/input/report/report_index.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::verbs {

/// A call that the driver says it refused.
struct Refusal {
  long thread = 0;
  std::string call;  ///< empty where no line says so
  int code = 0;
  std::string said;  ///< the lines before it
  std::string kernel;
  std::optional<image::ComputeCapability> gpu;
  std::uint32_t line = 0;  ///< in the log or report
  std::uint64_t count = 1;
  bool last = false;  ///< nothing was refused on this thread afterwards
};

/// Refusals of device code, equal ones once.
std::vector<Refusal> refusals_in(std::string_view log);

/// Whether a report is of libkshim-injection.so, which sees no call.
bool is_without_shim(const input::Report& report);

struct UnseenProcess {
  input::Report report;
  std::set<std::uint64_t> deciding;  ///< lines of the refusals that no other one of their thread follows
};

class DriverWitness {
 public:
  explicit DriverWitness(const diagnose::RunFacts& run);
  /// What a shim saw of it.
  void learn(const input::Report& report);
  /// A report for each process with refusals that no shim saw.
  std::vector<UnseenProcess> unseen(input::ObjectFiles& files) const;
  /// How often the driver refused in the process of such a report, and that no shim saw it.
  core::Evidence unseen_refusals(const input::Report& report, std::uint64_t count) const;

 private:
  struct Seen {
    std::set<int> codes;
    std::vector<std::string> past_it;  ///< files whose calls went past the shim
    bool shim = false;
    bool knows(int code) const { return codes.contains(code); }
  };
  input::FailureRecord& add(const Refusal& refusal, UnseenProcess& to) const;

  const diagnose::RunFacts& run_;
  std::vector<Refusal> refusals_;
  std::vector<input::Report> injected_;  ///< of libkshim-injection.so
  std::map<long, Seen> processes_;
  std::map<long, long> process_of_thread_;
  std::set<int> codes_;  ///< of all processes
  std::optional<input::DriverRecord> driver_;
  std::vector<input::DeviceRecord> devices_;
  std::string host_;
};

}  // namespace kshim::verbs

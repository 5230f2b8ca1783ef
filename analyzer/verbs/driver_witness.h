// SPDX-License-Identifier: Apache-2.0
// The driver's error log (CUDA_LOG_FILE) as a witness of processes that the shim is not in: what it says
// there becomes the records that a shim would have written.
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
  std::uint32_t line = 0;  ///< in the log
  std::uint64_t count = 1;
};

/// Refusals of device code, equal ones once.
std::vector<Refusal> refusals_in(std::string_view log);

class DriverWitness {
 public:
  explicit DriverWitness(const AnalysisOptions& options);
  /// What a shim saw of it.
  void learn(const Report& report);
  /// A report for each process with refusals that no shim saw.
  std::vector<Report> unseen(ObjectFiles& files) const;
  /// How often the driver refused in the process of such a report, and that no shim saw it.
  Evidence unseen_refusals(const Report& report, std::uint64_t count) const;

 private:
  struct Seen {
    std::set<int> codes;
    std::vector<std::string> past_it;  ///< files whose calls went past the shim
    bool knows(int code) const { return codes.contains(code); }
  };
  const AnalysisOptions& options_;
  std::vector<Refusal> refusals_;
  std::map<long, Seen> processes_;
  std::map<long, long> process_of_thread_;
  std::set<int> codes_;  ///< of all processes
  std::optional<DriverRecord> driver_;
  std::vector<DeviceRecord> devices_;
  std::string host_;
};

}  // namespace kshim::verbs

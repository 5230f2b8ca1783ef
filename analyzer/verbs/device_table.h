// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/input/report/report.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// The GPUs of all reports. The same GPU seen by several processes is one GPU: by UUID, else by host, ordinal
/// and name.
class DeviceTable {
 public:
  explicit DeviceTable(std::vector<DeviceSummary>& out) : out_(out) {}
  /// `findings`: of this report.
  void add(const Report& report, const std::vector<Finding>& findings);
  std::uint64_t left_out() const { return left_out_; }

 private:
  void add(const Report& report, const DeviceRecord& device, unsigned findings);

  std::vector<DeviceSummary>& out_;
  std::unordered_map<std::string, std::size_t> known_;
  std::uint64_t left_out_ = 0;
};

}  // namespace kshim::analysis

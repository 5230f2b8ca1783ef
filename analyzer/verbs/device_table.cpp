// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/device_table.h"

#include <fmt/core.h>

#include <algorithm>

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostDevices = 65536;
constexpr std::size_t kLongestName = 256;

std::string key_of(const Report& report, const DeviceRecord& device, bool by_uuid) {
  return by_uuid ? fmt::format("{}\n{}", report.process.host, device.uuid)
                 : fmt::format("{}\n{}\n{}", report.process.host, device.ordinal, device.name);
}

}  // namespace

void DeviceTable::add(const Report& report, const std::vector<Finding>& findings) {
  for (const DeviceRecord& device : report.devices) {
    const auto named = std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.severity == Severity::error &&
             std::any_of(finding.devices.begin(), finding.devices.end(), [&](const Device& row) {
               return row.kind == Device::Kind::present && row.ordinal == device.ordinal;
             });
    });
    add(report, device, static_cast<unsigned>(named));
  }
}

void DeviceTable::add(const Report& report, const DeviceRecord& device, unsigned findings) {
  const std::string key = key_of(report, device, !device.uuid.empty());
  auto same = known_.find(key);
  if (same == known_.end() && !device.uuid.empty()) {
    same = known_.find(key_of(report, device, false));
    if (same != known_.end() && !out_[same->second].uuid.empty()) same = known_.end();  // another one
  }
  if (same != known_.end()) {
    out_[same->second].findings = std::max(out_[same->second].findings, findings);
    return;
  }
  if (out_.size() == kMostDevices) {
    ++left_out_;
    return;
  }
  known_.emplace(key, out_.size());
  // A report that knows no UUID speaks of the same GPU, where ordinal and name agree.
  if (!device.uuid.empty()) known_.emplace(key_of(report, device, false), out_.size());
  DeviceSummary summary;
  summary.host = report.process.host;
  summary.ordinal = device.ordinal;
  summary.name = device.name.substr(0, kLongestName);
  if (const auto arch = image::parse_arch(device.compute_capability)) summary.cc = arch->cc;
  summary.uuid = device.uuid.substr(0, kLongestName);
  summary.pci = device.pci.substr(0, kLongestName);
  if (report.driver) {
    summary.driver_cuda = report.driver->cuda_version.substr(0, kLongestName);
    summary.kernel_module = report.driver->kernel_module.substr(0, kLongestName);
    summary.simulated = report.driver->simulated;
  }
  summary.findings = findings;
  out_.push_back(std::move(summary));
}

}  // namespace kshim::analysis

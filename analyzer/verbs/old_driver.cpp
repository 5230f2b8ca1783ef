// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/old_driver.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"

namespace kshim::scan {
namespace {

using analysis::Finding;
using analysis::GpuRow;

Finding finding_of(const GpuRow& gpu, image::Version driver) {
  const std::string target(image::to_name(image::ImageKind::cubin, {gpu.cc, image::Suffix::none}).view());
  const image::ShortName first = image::to_name(gpu.first_toolkit);
  const image::ShortName named = image::to_name(driver);
  Finding finding;
  finding.cause = analysis::Cause::driver_too_old;
  finding.severity = analysis::Severity::error;
  finding.confidence = 0.97;
  finding.headline = fmt::format("a driver for CUDA {} does not serve {}: CUDA {} is the first that knows it",
                                 named.view(), target, first.view());
  finding.devices = {analysis::target_device(gpu.cc)};
  finding.need = target;
  finding.evidence.push_back({analysis::EvidenceId::first_toolkit,
                              fmt::format("CUDA {} is the first toolkit that builds for {}, and the driver "
                                          "that came with it is the first for such GPUs.",
                                          first.view(), target),
                              {},
                              {{"cuda", std::string(first.view())}, {"architecture", target}}});
  analysis::AdviceInput at;
  at.cause = finding.cause;
  at.device = gpu.cc;
  at.driver = driver;
  finding.about = std::make_shared<const analysis::AdviceInput>(std::move(at));
  return finding;
}

}  // namespace

std::vector<Finding> old_driver_findings(const std::vector<image::Arch>& targets, image::Version driver) {
  std::vector<Finding> out;
  if (!driver.known()) return out;
  std::vector<image::ComputeCapability> told;
  for (const image::Arch& target : targets) {
    const GpuRow* gpu = analysis::find_gpu(target.cc);
    if (gpu == nullptr || driver >= gpu->first_toolkit) continue;
    if (std::find(told.begin(), told.end(), target.cc) != told.end()) continue;
    told.push_back(target.cc);
    out.push_back(finding_of(*gpu, driver));
  }
  advise(out);
  return out;
}

}  // namespace kshim::scan

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/input/report/report_index.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/scan.h"

namespace kshim::verbs {

/// What reports list of the images of files, for those that are gone.
class ListedImages {
 public:
  /// Of the objects that the findings are about.
  void add(const input::Report& report, const std::vector<core::Finding>& findings);
  const std::vector<device_code::ImageCount>* find(const std::string& path,
                                                   const std::string& build_id) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<device_code::ImageCount>> images_;
};

/// Whether another list of architectures would fix it.
bool is_for_fleet(const core::Finding& finding);
/// For each file that lacks code for one of the targets, or without targets for one of several kinds of GPU
/// in the reports: what to build it for.
std::vector<advise::FleetPlan> fleet_plans(const Analysis& analysis, const diagnose::AnalysisOptions& options,
                                           const ListedImages& listed, input::ObjectFiles& files);

/// Sets TargetVerdict::for_newer, and says so in the finding.
void note_code_for_newer_gpus(Scan& scan);
/// Files whose findings another list of architectures would fix, the most severe first. A GPU that code was
/// left out for on purpose, as far as that shows, is in no plan.
std::vector<advise::FleetPlan> fleet_plans(const Scan& scan);

}  // namespace kshim::verbs

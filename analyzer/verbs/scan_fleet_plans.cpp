// SPDX-License-Identifier: Apache-2.0
// For each file that lacks code for a target: what to build it for.
#include "analyzer/verbs/scan_fleet_plans.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyzer/verbs/fleet_plans.h"

namespace kshim::scan {

std::vector<analysis::FleetPlan> fleet_plans(const Scan& scan) {
  constexpr std::size_t kMostPlans = 256;
  std::vector<image::ComputeCapability> gpus;
  for (const image::Arch& target : scan.targets) gpus.push_back(target.cc);
  std::unordered_map<std::string, const ScannedObject*> objects;
  for (const ScannedObject& object : scan.objects) objects.emplace(object.name(), &object);
  std::vector<std::pair<const ScannedObject*, std::vector<image::ComputeCapability>>> lacking;
  std::unordered_map<const ScannedObject*, std::size_t> place;
  // In the order of the findings: the most severe first.
  for (const analysis::Finding& finding : scan.findings) {
    const auto need = image::parse_arch(finding.need);
    const auto object = objects.find(finding.object);
    if (finding.severity == analysis::Severity::info || !need || object == objects.end() ||
        !analysis::is_for_fleet(finding))
      continue;
    const auto [at, first] = place.try_emplace(object->second, lacking.size());
    if (first) lacking.push_back({object->second, {}});
    lacking[at->second].second.push_back(need->cc);
  }
  std::vector<analysis::FleetPlan> out;
  for (auto& [object, targets] : lacking) {
    if (out.size() == kMostPlans) break;
    auto plan = analysis::plan_fleet({gpus, std::move(targets), object->images});
    if (!plan) continue;
    plan->object = object->name();
    plan->build_id = object->build_id;
    out.push_back(std::move(*plan));
  }
  return out;
}

}  // namespace kshim::scan

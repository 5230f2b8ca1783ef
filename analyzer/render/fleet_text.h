// SPDX-License-Identifier: Apache-2.0
// What to build the files of a fleet for, on a page and as JSON.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "analyzer/advise/fleet.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/page.h"

namespace kshim::analysis {

/// The plans that say more than the fix of the finding does.
std::vector<const FleetPlan*> fleet_news(const std::vector<FleetPlan>& plans);
/// What a plan says, as labels and texts; a row without a label goes with the one before.
std::vector<std::pair<std::string, std::string>> plan_rows(const FleetPlan& plan);
/// Nothing without news.
void print_fleet(const std::vector<FleetPlan>& plans, bool verbose, Page& page);
Json to_json(const FleetPlan& plan);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// What to build the files of a fleet for, on a page and as JSON.
#pragma once
#include <vector>

#include "analyzer/fleet/fleet.h"
#include "analyzer/render/json_finding.h"
#include "analyzer/render/page.h"

namespace kshim::analysis {

/// Nothing for plans that say no more than the fix of the finding does.
void print_fleet(const std::vector<FleetPlan>& plans, bool verbose, Page& page);
Json to_json(const FleetPlan& plan);

}  // namespace kshim::analysis

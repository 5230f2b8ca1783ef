// SPDX-License-Identifier: Apache-2.0
// What to build the files of a fleet for, in a document and as JSON.
#pragma once

#include "analyzer/advise/fleet.h"
#include "analyzer/render/document.h"
#include "analyzer/render/json_finding.h"

namespace kshim::analysis {

/// The plans that say more than the fix of the finding does; nothing without such.
void write_fleet(const std::vector<FleetPlan>& plans, Document& document);
Json to_json(const FleetPlan& plan);

}  // namespace kshim::analysis

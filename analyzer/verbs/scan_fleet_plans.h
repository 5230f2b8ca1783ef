// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyzer/advise/fleet.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

/// Of the files whose findings another list of architectures would mend, the most severe first.
std::vector<analysis::FleetPlan> fleet_plans(const Scan& scan);

}  // namespace kshim::scan

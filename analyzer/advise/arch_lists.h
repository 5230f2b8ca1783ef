// SPDX-License-Identifier: Apache-2.0
// How each build system wants to be told which architectures to build: the lists of a plan, in its words.
#pragma once
#include <string>
#include <vector>

#include "analyzer/advise/build_plan.h"

namespace kshim::analysis {

/// PTX for the newest plain architecture, so that GPUs which are newer still can compile it.
void add_newest_ptx(std::vector<PlannedArch>& archs);
/// The f image of the same compute capability; nullptr where there is none.
PlannedArch* family_sibling(std::vector<PlannedArch>& archs, const PlannedArch& plain);
/// "8.6": the newest without a suffix.
std::string newest_plain(const BuildPlan& plan);

}  // namespace kshim::analysis

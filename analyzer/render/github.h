// SPDX-License-Identifier: Apache-2.0
// GitHub's workflow commands: lines on a job's output that become annotations.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/render/share_place.h"

namespace kshim::analysis {

/// One command a finding, most severe first: GitHub shows 10 of each kind a step. Notes come last.
std::string github_commands(const std::vector<PlacedFinding>& findings,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes);

}  // namespace kshim::analysis

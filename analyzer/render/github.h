// SPDX-License-Identifier: Apache-2.0
// GitHub's workflow commands: lines on a job's output that become annotations.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/render/share_place.h"
#include "analyzer/render/source_root.h"

namespace kshim::analysis {

/// One command a finding, most severe first. Of each kind GitHub shows 10 a step: where there are more, the
/// last of these says how many are left out. Notes come last.
std::string github_commands(const std::vector<PlacedFinding>& findings, const SourceRoot& root,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes);

}  // namespace kshim::analysis

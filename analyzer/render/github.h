// SPDX-License-Identifier: Apache-2.0
// GitHub's workflow commands: lines on a job's output that become annotations.
#pragma once

#include "analyzer/render/share_place.h"

namespace kshim::analysis {

/// Commands by kind, cut to what GitHub shows.
class GithubCommands {
 public:
  void add(Severity severity, std::string_view title, std::string_view text,
           std::string_view properties = {});
  std::string text() const;

 private:
  std::array<std::vector<std::string>, 3> commands_;
};

/// One command a finding, most severe first. Of each kind GitHub shows 10 a step: where there are more, the
/// last of these says how many are left out. Notes come last.
std::string github_commands(const std::vector<PlacedFinding>& findings, const SourceRoot& root,
                            const std::vector<std::string>& warnings, const std::vector<std::string>& notes);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// SARIF 2.1.0, for code scanning: the rules are the causes.
#pragma once

#include "analyzer/render/share_place.h"

namespace kshim::analysis {

struct SarifRun {
  std::string id;  ///< what tells runs of one tool apart: "kshim-scan/"
  std::vector<PlacedFinding> findings;
  std::vector<std::string> notes;
  std::vector<std::string> failures;  ///< why the tool could not look: the run was no success
  SourceRoot root = SourceRoot::of_process();
};
std::string sarif_log(const SarifRun& run);

}  // namespace kshim::analysis

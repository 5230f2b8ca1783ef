// SPDX-License-Identifier: Apache-2.0
// SARIF 2.1.0, for code scanning: the rules are the causes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/render/share_place.h"

namespace kshim::analysis {

struct SarifRun {
  std::vector<PlacedFinding> findings;
  std::vector<std::string> notes;
  std::vector<std::string> failures;  ///< why the tool could not look: the run was no success
};
std::string sarif_log(const SarifRun& run);

/// RFC 3986: an absolute path as file:///a%20b, a relative one as a relative reference.
std::string file_uri(std::string_view path);

}  // namespace kshim::analysis

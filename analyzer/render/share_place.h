// SPDX-License-Identifier: Apache-2.0
// Where programs (SARIF viewers, GitHub) should show a finding.
#pragma once
#include <string>
#include <vector>

#include "analyzer/core/finding.h"
#include "analyzer/render/source_root.h"

namespace kshim::analysis {

struct FilePlace {
  std::string file;  ///< as found, not made harmless; empty where none is known
  unsigned line = 0;
  std::string member;  ///< inside `file` where that is an archive
};

struct PlacedFinding {
  Finding finding;
  FilePlace place;
};

/// The innermost line of the checkout, else the user's own line wherever it is, else the file with the device
/// code, else the line of the report.
FilePlace place_of(const Finding& finding, const SourceRoot& root);
/// With place_of() each, and with `otherwise` where there is none: what has no place is shown nowhere. The
/// order is kept.
std::vector<PlacedFinding> placed(const std::vector<Finding>& findings, const SourceRoot& root,
                                  const std::string& otherwise);
/// harmless() of each line.
std::string harmless_lines(std::string_view text);
/// At most that many bytes, cut between characters, with an ellipsis where something is gone.
std::string clipped(std::string text, std::size_t bytes);

}  // namespace kshim::analysis

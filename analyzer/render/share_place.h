// SPDX-License-Identifier: Apache-2.0
// Where programs (SARIF viewers, GitHub) should show a finding.
#pragma once

#include "analyzer/core/finding.h"

namespace kshim::analysis {

// The checkout that CI servers look for files in: what lies in it is named from there, as it is called on any
// machine.

class SourceRoot {
 public:
  /// `root`: the folder, absolute; none where it is empty or `/`. `names`: other paths of it, through links.
  /// `working`: the folder that relative paths start in, absolute; may be empty.
  SourceRoot(std::string root, std::vector<std::string> names, std::string working);
  /// $GITHUB_WORKSPACE, else the working folder.
  static SourceRoot of_process();

  struct Named {
    std::string path;
    bool inside = false;  ///< `path` is relative to the root
  };
  /// A relative path outside of the root becomes absolute, where the working folder is known.
  Named name(std::string_view path) const;
  const std::string& folder() const { return root_; }  ///< without the last slash; empty for none

 private:
  std::string root_;
  std::vector<std::string> names_;  ///< root_ first
  std::string working_;
};

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

// SPDX-License-Identifier: Apache-2.0
// The checkout that CI servers look for files in: what lies in it is named from there, as it is called on any
// machine.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

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

}  // namespace kshim::analysis

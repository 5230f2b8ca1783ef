// SPDX-License-Identifier: Apache-2.0
// Whose the source folder is that a file lies in: `pip install -e` leaves the libraries there, and setuptools
// before PEP 660, or called as setup.py, its NAME.egg-info beside them (setuptools' documentation,
// "Development Mode"; "Key files of the egg-info folder").
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"

namespace kshim::packages {

class SourceTrees {
 public:
  explicit SourceTrees(Budget& budget) : budget_(budget) {}
  /// Of a library outside of every folder of installed packages, where the project is root's or one's own.
  /// Its module, or the package that it lies in, must be one that the egg-info lists: a folder with an
  /// egg-info may hold other people's files as well.
  std::optional<Package> owner(const std::string& path);

 private:
  struct Tree {
    Package package;
    std::vector<std::string> modules;  ///< "vllm", "flash_attn_2_cuda"
  };
  const std::vector<Tree>& trees(const std::string& folder);
  Budget& budget_;
  std::map<std::string, std::vector<Tree>> trees_;  ///< by folder
};

}  // namespace kshim::packages

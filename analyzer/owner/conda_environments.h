// SPDX-License-Identifier: Apache-2.0
// Which conda package a file belongs to, by the records in conda-meta/ of its environment (docs.conda.io,
// "Package metadata"). Each environment is read once.
#pragma once
#include <map>

#include "analyzer/owner/bounded.h"
#include "analyzer/owner/package.h"

namespace kshim::packages {

class CondaEnvironments {
 public:
  explicit CondaEnvironments(Budget& budget) : budget_(budget) {}
  /// The prefix of the environment that a path lies in: the next folder above it that has a conda-meta; empty
  /// where none has.
  const std::string& prefix(const std::string& path);
  std::optional<Package> owner(const std::string& path);

 private:
  struct Environment {
    std::vector<Package> packages;
    PathIndex files;
  };
  const Environment& environment(const std::string& prefix);
  Budget& budget_;
  std::map<std::string, std::string> prefixes_;  ///< by folder
  std::map<std::string, Environment> environments_;
};

}  // namespace kshim::packages

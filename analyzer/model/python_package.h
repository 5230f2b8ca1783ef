// SPDX-License-Identifier: Apache-2.0
// Which installed Python package a file belongs to, by the RECORD files of its site-packages folder
// (packaging.python.org, "Recording installed projects").
#pragma once
#include <optional>
#include <string>

namespace kshim::analysis {

struct PythonPackage {
  std::string name;
  std::string version;
};

/// nullopt for a file outside of such a folder, or one that no package there lists.
std::optional<PythonPackage> python_package_of(const std::string& path);
/// Name and version as the METADATA in a `.dist-info` folder gives them; empty where it does not.
PythonPackage read_dist_info(const std::string& folder);

}  // namespace kshim::analysis

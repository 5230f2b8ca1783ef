// SPDX-License-Identifier: Apache-2.0
// kshim export --to: what files ask of a GPU, for what places them on machines.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kshim::cli {

struct RequirementOptions {
  std::string to;  ///< one of requirement_names()
  std::string output;
  std::optional<std::string> declared;  ///< what to verify; else, with `verify`, what the files declare
  bool verify = false;
  std::vector<std::string> paths;
};
std::vector<std::string> requirement_names();
int export_requirements(const RequirementOptions& options);

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// What the distributions of a Python environment say of one another in their METADATA (packaging.python.org,
// "Core metadata"; PEP 508): before a release is proposed, what is there has its say.
#pragma once

#include "analyzer/data/knowledge.h"
#include "analyzer/owner/package.h"

namespace kshim::owner {

/// "torch==2.3.1", without those of extras.
struct Demand {
  data::ProjectName project;
  std::string range;  ///< "==2.3.1", ">=2.2,<3"; empty: any
};

struct Distribution {
  std::string name;
  std::string version;
  std::vector<std::string> extras;
  std::vector<Demand> demands;
  std::string label() const { return name + " " + version; }
};

/// Of the environment's folder; nothing where that is not of this machine.
std::vector<Distribution> distributions_in(const PythonEnvironment& environment);

/// By its name; nullptr where it is not there.
const Distribution* find_distribution(const std::vector<Distribution>& there, std::string_view name);

/// By the lines of its METADATA; nullopt where it has no name that can stand in a command.
std::optional<Distribution> read_distribution(std::string_view metadata);

/// Whether no release is in both ranges: "==2.3.1" and "==2.7.*", "<9" and ">=9.7".
bool exclude_each_other(std::string_view range, std::string_view other);

}  // namespace kshim::owner

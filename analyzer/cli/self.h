// SPDX-License-Identifier: Apache-2.0
// Where the parts that belong to this command lie: beside it in a build tree or under an installed prefix.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::cli {

struct Located {
  std::filesystem::path path;                   ///< absolute; empty when it is nowhere
  std::vector<std::filesystem::path> searched;  ///< in the order looked at
};

/// For a message: what was looked for, or why nothing was.
std::string search_of(const Located& located);

/// libkshim.so.
Located find_shim();
/// Where it is; UserError with what was searched where it is nowhere.
std::filesystem::path shim_or_refuse();
/// libkshim-audit.so.
Located find_audit();
/// libkshim-injection.so.
Located find_injection();
/// The folder that holds the simulated libcuda.so.1.
Located find_simulator();

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// `--simulate GPU[,driver=X.Y][,name=N]`, as often as there are devices: what the simulator's environment
// says then.
#pragma once
#include <string>
#include <vector>

namespace kshim::cli {

struct Simulation {
  std::string devices;  ///< KSHIM_SIM_DEVICES: "6.1;9.0:H100"
  std::string driver;   ///< KSHIM_SIM_DRIVER: "12.4", or empty for the simulator's own
};

/// Throws UserError for a GPU, a version or a key that is not one.
Simulation parse_simulations(const std::vector<std::string>& specifications);

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// The environment that CMD gets: ours, plus what brings the shim in.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::run {

class Environment {
 public:
  /// A copy of this process's.
  static Environment current();

  std::string_view get(std::string_view name) const;  ///< empty when it is not set
  bool has(std::string_view name) const;
  void set(std::string_view name, std::string_view value);
  void prepend(std::string_view name, std::string_view value, char separator);
  void append(std::string_view name, std::string_view value, char separator);
  void remove(std::string_view name);
  /// For execve; valid until the next change.
  std::vector<char*> pointers();

 private:
  std::vector<std::string> entries_;  ///< NAME=VALUE
};

/// LD_PRELOAD with the shim in it: before everything that is there, so that its dlsym is asked first, but
/// behind a sanitizer's runtime, which insists on being the first library. A shim that is there already is
/// not named twice.
std::string merge_preload(std::string_view existing, std::string_view shim);

/// The executable that CMD of `kshim run` means, as execvp(3) finds it: throws UserError with 127 (not found)
/// or 126 (found, but not executable).
std::filesystem::path find_program(const std::string& name);

/// `--simulate GPU[,driver=X.Y][,name=N]`, as often as there are devices: what the simulator's environment
/// says then.
struct Simulation {
  std::string devices;  ///< KSHIM_SIM_DEVICES: "6.1;9.0:H100"
  std::string driver;   ///< KSHIM_SIM_DRIVER: "12.4", or empty for the simulator's own
};

/// Throws UserError for a GPU, a version or a key that is not one.
Simulation parse_simulations(const std::vector<std::string>& specifications);

}  // namespace kshim::run

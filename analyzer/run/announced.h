// SPDX-License-Identifier: Apache-2.0
// The reports that processes of a run said they write (shim/report/run_socket.h), wherever they lie: of
// another user, of a program that changes KSHIM_REPORT, of a `kshim run` inside of this one.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/verbs/analysis.h"

namespace kshim::cli {

struct Announced {
  pid_t pid = 0;
  std::filesystem::path path;  ///< empty where the process could make none
};

struct Elsewhere {
  std::vector<std::filesystem::path> reports;  ///< that are not among those of the run's folder
  std::vector<analysis::BlindProcess> lost;    ///< whose report is gone or empty
};

/// `known`: the reports of the run's folder. `exe_of` names the program of a process, where that was seen.
Elsewhere find_announced(const std::vector<Announced>& announced,
                         const std::vector<std::filesystem::path>& known,
                         const std::function<std::string(pid_t)>& exe_of);

/// Tells the `kshim run` around this one, if there is one, where the reports lie.
void announce(const std::vector<std::filesystem::path>& reports);

}  // namespace kshim::cli

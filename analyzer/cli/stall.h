// SPDX-License-Identifier: Apache-2.0
// A file system that no longer answers (NFS without its server, FUSE without its daemon) blocks every process
// that asks it, and no signal but SIGKILL gets through. A second thread looks at the others in /proc, says
// which file it is, and ends the command.
#pragma once
#include <chrono>
#include <optional>

namespace kshim::cli {

/// Ends the process with `status` once a thread has waited for a file for `patience` without any progress.
/// Once, before work begins. Zero: waits on.
void end_on_stall(std::chrono::seconds patience, int status);
/// From now on with this status; without one the process goes on.
void on_stall(std::optional<int> status);

}  // namespace kshim::cli

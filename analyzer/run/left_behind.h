// SPDX-License-Identifier: Apache-2.0
// What a killed `kshim run` could not remove, the next one does.
#pragma once
#include <filesystem>

namespace kshim::cli {

/// The caller's own kshim-run-* in `folder` at whose sockets nobody listens any more.
void remove_dead_sockets(const std::filesystem::path& folder);

/// The empty folders in `folder` of runs that have ended: a run's name ends in the process that made it.
void remove_empty_runs(const std::filesystem::path& folder);

}  // namespace kshim::cli

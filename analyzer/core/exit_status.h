// SPDX-License-Identifier: Apache-2.0
// Exit statuses of the command, as docs and shell scripts know them.
#pragma once

namespace kshim::cli::exit_status {

constexpr int kOk = 0;
constexpr int kFindings = 1;     ///< findings of severity error
constexpr int kMisuse = 2;       ///< wrong arguments
constexpr int kNoInput = 3;      ///< nothing readable in the input
constexpr int kRunFailed = 125;  ///< `kshim run` itself failed, as env(1) and timeout(1) say it
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kSignalBase = 128;

}  // namespace kshim::cli::exit_status

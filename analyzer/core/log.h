// SPDX-License-Identifier: Apache-2.0
// KSHIM_LOG for the command: which files it read, which it could not use and why, which rule said what. On
// stderr, apart from the answer itself, so that `KSHIM_LOG=debug kshim analyze ...` goes into a bug report
// about a wrong answer.
#pragma once
#include <string_view>

namespace kshim::core {

/// Reads KSHIM_LOG: off, error, warn (default), info or debug. A bad value is named, as the shim does, and
/// warn is used.
void set_up_log();

/// Whether KSHIM_LOG asks for it: a message need not be made for nobody.
bool logs_debug();
void log_debug(std::string_view message);

}  // namespace kshim::core

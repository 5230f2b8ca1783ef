// SPDX-License-Identifier: Apache-2.0
// Which file a command name means, as execvp(3) finds it.
#pragma once
#include <filesystem>
#include <string>

namespace kshim::cli {

/// The executable that CMD of `kshim run` means: throws UserError with 127 (not found) or 126 (found, but not
/// executable).
std::filesystem::path find_program(const std::string& name);

}  // namespace kshim::cli

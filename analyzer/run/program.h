// SPDX-License-Identifier: Apache-2.0
// Which file a command name means, as execvp(3) finds it.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace kshim::cli {

/// The executable file of that name in PATH, or the name itself when it has a slash; nullopt when there is
/// none.
std::optional<std::filesystem::path> search_path(const std::string& name);

/// The same for CMD of `kshim run`: throws UserError with 127 (not found) or 126 (found, but not executable).
std::filesystem::path find_program(const std::string& name);

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// The names that one file has: databases of packages know a file by one of them only.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace kshim::packages {

/// The path itself, the path beside /usr where /lib and its like are links into it (or the other way round),
/// and where links lead. All of them below `root`, without it.
std::vector<std::string> names_of(const std::filesystem::path& root, const std::string& path);

/// Whether a package of the system may own the path.
bool may_be_system(const std::string& path);

}  // namespace kshim::packages

// SPDX-License-Identifier: Apache-2.0
// Reading the databases of package managers, which anybody may have written: regular files only, up to a
// size, and all of it within a budget.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::packages {

/// What looking for owners may cost in one analysis. Databases of a large machine: 30 MB of dpkg, 100 MB of a
/// conda environment.
struct Budget {
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::uint64_t entries = 500'000;  ///< of folders, and files opened
};

/// The whole file; nullopt where it is no regular file, larger than `most`, or over the budget. A pipe or a
/// device is not waited for.
std::optional<std::string> read_bounded(const std::filesystem::path& path, std::uint64_t most,
                                        Budget& budget);

/// The names in a folder, sorted so that answers do not depend on the file system; empty where it cannot be
/// read or has more than the budget lets pass.
std::vector<std::string> names_in(const std::filesystem::path& folder, Budget& budget);

/// Calls visit(line) for each line, without its end ("\n" or "\r\n"), until it answers false.
void each_line(std::string_view text, const std::function<bool(std::string_view)>& visit);

/// The lines that are not empty.
std::vector<std::string> lines_of(std::string_view text);

/// An absolute path without "." and ".."; empty for anything else a report may hold in its place.
std::string normal_path(std::string_view path);

}  // namespace kshim::packages

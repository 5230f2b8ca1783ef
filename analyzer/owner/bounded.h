// SPDX-License-Identifier: Apache-2.0
// Reading the databases of package managers, which anybody may have written: regular files only, up to a
// size, and all of it within a budget.
#pragma once

#include "analyzer/core/prelude.h"

namespace kshim::owner {

/// What looking for owners may cost in one analysis. Databases of a large machine: 30 MB of dpkg, 100 MB of a
/// conda environment.
struct LookupBudget {
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::uint64_t entries = 500'000;  ///< of folders, and files opened
};

/// The whole file; nullopt where it is no regular file, larger than `most`, or over the budget. A pipe or a
/// device is not waited for.
std::optional<std::string> read_bounded(const std::filesystem::path& path, std::uint64_t most,
                                        LookupBudget& budget);

/// The names in a folder that end so, sorted so that answers do not depend on the file system; empty where it
/// cannot be read or has more than the budget lets pass.
std::vector<std::string> names_in(const std::filesystem::path& folder, LookupBudget& budget,
                                  std::string_view ending = {});

/// Calls visit(line) for each line, without its end ("\n" or "\r\n"), until it answers false.
void each_line(std::string_view text, const std::function<bool(std::string_view)>& visit);

/// An absolute path without "." and ".."; empty for anything else a report may hold in its place.
std::string normal_path(std::string_view path);

// Which owners list a path, for the half a million paths of a machine: 16 bytes a path. Paths are known by a
// hash of 64 bits, so that two of them are taken for one about once in 10^8 machines.

class PathIndex {
 public:
  using Owner = std::uint32_t;
  /// Before the first look-up. Paths over a number are dropped: no machine has so many.
  void add(std::string_view path, Owner owner);
  /// In the order of the owners' numbers, each once. Not for several threads at once.
  std::vector<Owner> owners(std::string_view path) const;

 private:
  mutable std::vector<std::pair<std::uint64_t, Owner>> rows_;
  mutable unsigned asked_ = 0;  ///< sorting them is worth it for many look-ups
};

// The names that one file has: databases of packages know a file by one of them only.

/// The path itself, the path beside /usr where /lib and its like are links into it (or the other way round),
/// and where links lead. All of them below `root`, without it.
std::vector<std::string> names_of(const std::filesystem::path& root, const std::string& path);

/// Where a path of `root` leads, relative to it: links are followed as that root's own, and none leads out of
/// it. nullopt where nothing is there.
std::optional<std::filesystem::path> resolve_in(const std::filesystem::path& root, std::string_view path);
/// Whether a package of the system may own the path.
bool may_be_system(const std::string& path);

}  // namespace kshim::owner

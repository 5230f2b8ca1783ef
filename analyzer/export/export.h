// SPDX-License-Identifier: Apache-2.0
// Reports as flat tables for DuckDB, Spark and the like: what `kshim export` calls.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::exports {

struct Options {
  std::filesystem::path folder;  ///< where the tables go
  bool zstd = false;
  /// A report without its end that changed in the last so many seconds is left for the next export: its
  /// process may still run.
  std::int64_t settle_s = 600;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct Result {
  std::uint64_t reports = 0;                       ///< exported now
  std::uint64_t known = 0;                         ///< exported before, unchanged
  std::uint64_t unsettled = 0;                     ///< left for later
  std::uint64_t rejected = 0;                      ///< that could not be read
  std::map<std::string_view, std::uint64_t> rows;  ///< by table
  std::vector<std::string> notes;
};

/// Throws UserError where the folder cannot be written; then no table has changed.
Result export_reports(const std::vector<std::filesystem::path>& paths, const Options& options);

}  // namespace kshim::exports

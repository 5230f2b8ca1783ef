// SPDX-License-Identifier: Apache-2.0
// Reports as flat tables for DuckDB, Spark and the like: what `kshim export` calls.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kshim::exports {

struct ExportRequest {
  std::filesystem::path folder;  ///< where the tables go
  bool zstd = false;
  /// A report without its end that changed in the last so many seconds is left for the next export: its
  /// process may still run.
  std::int64_t settle_s = 600;
  /// Leaves user names out, or replaces them with an HMAC under this key, as with the shim's KSHIM_PRIVATE.
  /// The key may be root's alone.
  bool hide_users = false;
  std::string key{};
  unsigned jobs = 0;  ///< threads; 0: one a core, no more than eight
  /// Of bytes, for which all inputs are looked at beforehand.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};
};

struct ExportResult {
  std::uint64_t reports = 0;                       ///< exported now
  std::uint64_t known = 0;                         ///< exported before, unchanged
  std::uint64_t unsettled = 0;                     ///< left for later
  std::uint64_t scans = 0;                         ///< exported now
  std::uint64_t rejected = 0;                      ///< that could not be read
  std::map<std::string_view, std::uint64_t> rows;  ///< by table
  std::vector<std::string> notes;
};

class Exporter {
 public:
  explicit Exporter(ExportRequest options) : options_(std::move(options)) {}
  /// Exports what earlier exports of this host did not. Throws UserError where the folder cannot be written;
  /// then no table has changed.
  ExportResult run(const std::vector<std::filesystem::path>& paths);

 private:
  void read_manifests();
  ExportRequest options_;
  std::vector<std::uint64_t> known_;  ///< hashes of path, size and time of change, in order
  std::set<std::string> manifests_;   ///< that known_ has
};

}  // namespace kshim::exports

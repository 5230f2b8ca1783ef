// SPDX-License-Identifier: Apache-2.0
// Device code that came from memory may have come from a cache before: the shim wrote its hash and size, and
// the folders where programs keep what they compiled are known (caches.def). Only on the machine that the
// report is of.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analyzer/data/knowledge.h"

namespace kshim::analysis {

struct CachedCode {
  const CacheRow* cache = nullptr;
  std::string folder;  ///< of the cache
  std::string file;
  std::string entry;  ///< what to delete: the file, or the folder that belongs to the kernel
};

/// Finds files by their content. Folders are walked once, symbolic links and what is not a plain file passed
/// over.
class CacheSearch {
 public:
  /// `environment`: the process's, as the report has it.
  using Environment = std::map<std::string, std::string>;
  std::optional<CachedCode> find(std::uint64_t hash, std::uint64_t size, const Environment& environment);
  /// The same for code that was loaded as a file.
  static std::optional<CachedCode> holding(const std::string& path, const Environment& environment);

 private:
  struct Known {
    std::string path;
    std::uint64_t size = 0;
    const CacheRow* cache = nullptr;
    std::string folder;
  };
  const std::multimap<std::uint64_t, Known>& files_in(const std::string& folder, const CacheRow& cache);
  std::optional<CachedCode> look_for(std::uint64_t hash, std::uint64_t size, const Environment& environment);
  std::map<std::string, std::multimap<std::uint64_t, Known>> folders_;
  std::map<std::uint64_t, std::optional<CachedCode>> answers_;
  // For all that one analysis asks: a report names the folders, and reports may be hostile.
  std::size_t files_left_ = 50'000;
  std::uint64_t hashed_left_ = std::uint64_t{1} << 30;
};

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/owner/path_index.h"

#include <algorithm>
#include <functional>

namespace kshim::packages {
namespace {

constexpr std::size_t kMostPaths = 8'000'000;

std::uint64_t hash_of(std::string_view path) { return std::hash<std::string_view>{}(path); }

}  // namespace

void PathIndex::add(std::string_view path, Owner owner) {
  if (rows_.size() < kMostPaths) rows_.emplace_back(hash_of(path), owner);
}

void PathIndex::seal() {
  std::sort(rows_.begin(), rows_.end());
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
  rows_.shrink_to_fit();
}

std::vector<PathIndex::Owner> PathIndex::owners(std::string_view path) const {
  const std::uint64_t hash = hash_of(path);
  std::vector<Owner> out;
  for (auto at = std::lower_bound(rows_.begin(), rows_.end(), std::pair(hash, Owner{0}));
       at != rows_.end() && at->first == hash; ++at)
    out.push_back(at->second);
  return out;
}

}  // namespace kshim::packages

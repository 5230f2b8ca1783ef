// SPDX-License-Identifier: Apache-2.0
// Which owners list a path, for the half a million paths of a machine: 16 bytes a path. Paths are known by a
// hash of 64 bits, so that two of them are taken for one about once in 10^8 machines.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kshim::packages {

class PathIndex {
 public:
  using Owner = std::uint32_t;
  /// Paths over a number are dropped: no machine has so many.
  void add(std::string_view path, Owner owner);
  /// Before the first look-up.
  void seal();
  /// In the order of the owners' numbers, each once.
  std::vector<Owner> owners(std::string_view path) const;

 private:
  std::vector<std::pair<std::uint64_t, Owner>> rows_;
};

}  // namespace kshim::packages

// SPDX-License-Identifier: Apache-2.0
// Which release of a library a framework was built with and checks for: library_needs.def.
#pragma once
#include <span>
#include <string_view>

namespace kshim::analysis {

struct LibraryNeedRow {
  std::string_view library;       ///< "cuDNN"
  std::string_view distribution;  ///< "tensorflow"
  std::string_view first;
  std::string_view last;
  std::string_view oldest;
  std::string_view sources;
};

std::span<const LibraryNeedRow> library_needs();
/// nullptr where nothing is known.
const LibraryNeedRow* library_need(std::string_view library, std::string_view distribution,
                                   std::string_view version);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// Which CUDA libraries may meet in one process and which belong together: library_habits.def.
#pragma once
#include <span>
#include <string_view>

namespace kshim::analysis {

struct StatelessLibraryRow {
  std::string_view prefix;
  std::string_view why;
  std::string_view sources;
};
struct LibraryPartsRow {
  std::string_view library;
  std::string_view part;
  std::string_view why;
  std::string_view sources;
};
struct LibraryUsesRow {
  std::string_view library;
  std::string_view used;
  std::string_view sources;
};

std::span<const StatelessLibraryRow> stateless_libraries();
std::span<const LibraryPartsRow> library_parts();
std::span<const LibraryUsesRow> library_uses();

/// Of a family: "nvrtc-builtins".
bool is_stateless_library(std::string_view family);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// Command lines that nobody can type: workers.def.
#pragma once
#include <span>
#include <string_view>

namespace kshim::analysis {

struct WorkerRow {
  std::string_view word;  ///< part of an argument
  std::string_view of;
  std::string_view sources;
};
std::span<const WorkerRow> workers();

}  // namespace kshim::analysis

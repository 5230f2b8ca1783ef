// SPDX-License-Identifier: Apache-2.0
// The key of the analysis cache. Ranks of a job and jobs of a user write the same lines but for
// times and for what tells processes, GPUs and threads apart. What is judged does not depend on those, but on
// which file's compilation took longest and whether all took long. Reports whose other bytes are equal are
// judged once.
#pragma once

#include "analyzer/input/report/report.h"

namespace kshim::input {

struct Alike {
  /// A hash that nobody can forge, because its seed is drawn by each process of kshim.
  using Key = std::array<std::uint64_t, 2>;
  std::optional<Key> key;  ///< of what they have in common; empty where a report cannot be compared
  std::optional<Key> key_with_program;  ///< and of what runs it, which some commands name
  std::vector<double> ms;               ///< of the `module` records
  using Gpu = std::array<std::string, 2>;
  std::vector<Gpu> gpus;  ///< `uuid` and `pci` of the `device` records
};

/// `report`: its process record, read without a note. `lines`: all that come after it.
Alike alike_of(const Report& report, std::string_view lines);

/// Whether `report` has a row for each value of `alike`, so that another one's values can take their places.
bool has_places(const Report& report, const Alike& alike);

}  // namespace kshim::input

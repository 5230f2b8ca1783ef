// SPDX-License-Identifier: Apache-2.0
// What a build brings along, which has to serve the GPU, too: wheels.json.
#pragma once
#include <string_view>

#include "analyzer/data/wheels.h"

namespace kshim::analysis {

struct CompanionRow {
  std::string_view distribution;
  std::string_view first;
  std::string_view last;
  std::string_view variant;
  std::string_view platform;
  std::string_view library;  ///< as in LibrarySupportRow
  std::string_view release;
  std::string_view sources;
};

/// What a release of the row brings along and does not serve the GPU; nullptr where all does, or nothing is
/// known.
const CompanionRow* refusing_companion(const WheelRow& row, std::string_view release,
                                       image::ComputeCapability cc);
/// The newest release of the row whose companions serve the GPU; empty where none does.
std::string_view last_with_companions(const WheelRow& row, image::ComputeCapability cc);

}  // namespace kshim::analysis

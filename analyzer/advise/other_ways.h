// SPDX-License-Identifier: Apache-2.0
// Packages that no rebuild mends, and what helps in its place: other_ways.def.
#pragma once
#include <span>
#include <string_view>

#include "analyzer/advise/advice.h"

namespace kshim::analysis {

struct OtherWayRow {
  std::string_view package;
  Cause cause;
  FixKind kind;
  std::string_view title;
  std::string_view command;
  std::string_view why;
  std::string_view caveat;
  std::string_view sources;
};
std::span<const OtherWayRow> other_ways();

bool has_other_ways(const AdviceInput& at);
/// Whether the package is one of them. Its fixes, where a row has the cause, are added.
bool add_other_ways(const AdviceInput& at, std::vector<Fix>& fixes);

}  // namespace kshim::analysis

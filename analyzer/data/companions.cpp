// SPDX-License-Identifier: Apache-2.0
#include "analyzer/data/companions.h"

#include "analyzer/data/knowledge_file.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;

bool is_of(const CompanionRow& companion, const WheelRow& row) {
  return companion.distribution == row.distribution && companion.variant == row.variant &&
         companion.platform == row.platform;
}

bool refuses(const CompanionRow& companion, ComputeCapability cc) {
  return library_supports(companion.library, companion.release, cc).value_or(Support::yes) ==
         Support::too_old_gpu;
}

}  // namespace

const CompanionRow* refusing_companion(const WheelRow& row, std::string_view release, ComputeCapability cc) {
  for (const CompanionRow& each : knowledge().companions) {
    if (is_of(each, row) && is_within(release, each.first, each.last) && refuses(each, cc)) return &each;
  }
  return nullptr;
}

std::string_view last_with_companions(const WheelRow& row, ComputeCapability cc) {
  bool refused = false;
  std::string_view out;
  for (const CompanionRow& each : knowledge().companions) {
    if (!is_of(each, row) || compare_releases(each.last, row.first) < 0 ||
        compare_releases(each.first, row.last) > 0)
      continue;
    if (refuses(each, cc)) {
      refused = true;
      continue;
    }
    const std::string_view last = compare_releases(each.last, row.last) < 0 ? each.last : row.last;
    if (out.empty() || compare_releases(last, out) > 0) out = last;
  }
  return refused ? out : row.last;
}

}  // namespace kshim::analysis

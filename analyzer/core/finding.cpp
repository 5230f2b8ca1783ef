// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/finding.h"

namespace kshim::analysis {
namespace {

constexpr CauseRow kCauses[] = {
#define KSHIM_CAUSE(id, name, severity, when, headline) {Cause::id, name, Severity::severity, when, headline},
#include "analyzer/core/causes.def"
#undef KSHIM_CAUSE
};
constexpr std::string_view kFixKinds[] = {
#define KSHIM_FIX_KIND(id, name) name,
#include "analyzer/core/fix_kinds.def"
#undef KSHIM_FIX_KIND
};
constexpr std::string_view kSeverities[] = {"none", "info", "warning", "error"};

}  // namespace

std::string_view to_name(Severity severity) { return kSeverities[static_cast<std::size_t>(severity)]; }
const CauseRow& row_of(Cause cause) { return kCauses[static_cast<std::size_t>(cause)]; }
std::string_view to_name(FixKind kind) { return kFixKinds[static_cast<std::size_t>(kind)]; }

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/other_ways.h"

#include <algorithm>

#include "analyzer/advise/driver_fixes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/program.h"

namespace kshim::analysis {
namespace {

constexpr OtherWayRow kOtherWays[] = {
#define KSHIM_OTHER_WAY(package, cause, kind, title, command, why, caveat, source_ids) \
  {package, Cause::cause, FixKind::kind, title, command, why, caveat, source_ids},
#include "analyzer/advise/other_ways.def"
#undef KSHIM_OTHER_WAY
};

}  // namespace

std::span<const OtherWayRow> other_ways() { return kOtherWays; }

bool has_other_ways(const AdviceInput& at) {
  return std::any_of(std::begin(kOtherWays), std::end(kOtherWays),
                     [&](const OtherWayRow& row) { return row.package == at.package; });
}

bool add_other_ways(const AdviceInput& at, std::vector<Fix>& fixes) {
  const ToolkitRow* toolkit = toolkit_that_driver_reads(at);
  const TemplateWords words = {
      {"cuda", image::to_name(toolkit != nullptr ? toolkit->version : image::Version{}).c_str()}};
  for (const OtherWayRow& row : kOtherWays) {
    if (row.package != at.package) continue;
    const bool needs_cuda = asks_for(row.command, "cuda");
    if (row.cause != at.cause || (needs_cuda && toolkit == nullptr)) continue;
    fixes.push_back({row.kind,
                     expand(row.title, words),
                     {for_program(expand(row.command, words), at.program)},
                     expand(row.why, words),
                     expand(row.caveat, words),
                     "workaround"});
  }
  return has_other_ways(at);
}

}  // namespace kshim::analysis

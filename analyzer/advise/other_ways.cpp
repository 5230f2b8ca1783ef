// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/other_ways.h"

#include <algorithm>

#include "analyzer/advise/driver_fixes.h"
#include "analyzer/advise/program.h"
#include "analyzer/data/knowledge.h"

namespace kshim::analysis {
namespace {

constexpr OtherWayRow kOtherWays[] = {
#define KSHIM_OTHER_WAY(package, cause, kind, title, command, why, caveat, source_ids) \
  {package, Cause::cause, FixKind::kind, title, command, why, caveat, source_ids},
#include "analyzer/advise/other_ways.def"
#undef KSHIM_OTHER_WAY
};

std::string filled(std::string_view text, std::string_view cuda) {
  constexpr std::string_view kWord = "{cuda}";
  std::string out(text);
  for (std::size_t found = 0; (found = out.find(kWord, found)) != std::string::npos; found += cuda.size())
    out.replace(found, kWord.size(), cuda);
  return out;
}

}  // namespace

std::span<const OtherWayRow> other_ways() { return kOtherWays; }

bool has_other_ways(const Situation& at) {
  return std::any_of(std::begin(kOtherWays), std::end(kOtherWays),
                     [&](const OtherWayRow& row) { return row.package == at.package; });
}

bool add_other_ways(const Situation& at, std::vector<Fix>& fixes) {
  const ToolkitRow* toolkit = toolkit_that_driver_reads(at);
  const image::ShortName name = image::to_name(toolkit != nullptr ? toolkit->version : image::Version{});
  for (const OtherWayRow& row : kOtherWays) {
    if (row.package != at.package) continue;
    const bool needs_cuda = row.command.find("{cuda}") != std::string_view::npos;
    if (row.cause != at.cause || (needs_cuda && toolkit == nullptr)) continue;
    fixes.push_back({row.kind,
                     filled(row.title, name.view()),
                     {for_program(filled(row.command, name.view()), at.program)},
                     filled(row.why, name.view()),
                     filled(row.caveat, name.view()),
                     "workaround"});
  }
  return has_other_ways(at);
}

}  // namespace kshim::analysis

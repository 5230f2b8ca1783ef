// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/other_failure.h"

#include <cctype>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/core/text.h"
#include "analyzer/owner/databases.h"
#include "analyzer/owner/distributions.h"
#include "analyzer/owner/finder.h"

namespace kshim::verbs {
namespace {

std::string_view title_of(std::string_view distribution) {
  const InstallerRow* row = find_installer(distribution, "pip");
  return row != nullptr ? row->title : distribution;
}

/// The distribution that brought the file: by RECORD, else by the name of the file.
std::string owner_of(const std::string& file) {
  if (file.empty()) return {};
  Finder finder;
  if (const auto& package = finder.of(file); package && package->manager == "pip") return package->name;
  const BuildRow* build = find_build("", file);
  return build == nullptr ? std::string() : std::string(build->distribution);
}

/// An extension and what it is built on, of two releases: what its metadata asks for decides, else its newest
/// release. nullopt where the environment is not at hand.
std::optional<FixDraft> match_extension(const OtherFailure& other, const PythonEnvironment& environment) {
  const std::vector<Distribution> there = distributions_in(environment);
  const Distribution* owner = find_distribution(there, owner_of(other.file));
  const Distribution* base = find_distribution(there, other.row->built_on);
  if (owner == nullptr || base == nullptr) return std::nullopt;
  TemplateWords words = {{"owner", shell_quote(owner->name)},
                         {"version", owner->version},
                         {"base", std::string(title_of(base->name))},
                         {"base_version", base->version},
                         {"base_package", base->name}};
  const ProjectName project(base->name);
  const auto asked = [&](std::string_view range) {
    words.emplace_back("range", range);
    return fix_of("match-extension/asked", words);
  };
  for (const Demand& demand : owner->demands)
    if (demand.project == project && exclude_each_other(demand.range, "==" + base->version))
      return asked(demand.range);
  const std::string distribution = wheel_name(owner->name).distribution;
  const ReleaseNeedRow* own = nullptr;
  const ReleaseNeedRow* fitting = nullptr;
  for (const ReleaseNeedRow& row : release_needs()) {
    if (row.distribution != distribution || row.package != base->name) continue;
    if (is_within(owner->version, row.first, row.last)) own = &row;
    if (!exclude_each_other(row.range, "==" + base->version)) fitting = &row;
  }
  if (fitting != nullptr && fitting != own) {
    words.emplace_back("release", fitting->last);
    return fix_of("match-extension/fitting", words);
  }
  if (own != nullptr && own != fitting) return asked(own->range);
  return fix_of("match-extension/newest", words);
}

}  // namespace

// As far as it depends on what stands beside it.
OtherAnswer other_answer(const LogFacts& clues, const OtherFailure& other,
                         const PythonEnvironment& environment) {
  Facts at;
  if (!clues.devices.empty()) at.gpu.cc = clues.devices.front().cc;
  at.driver.cuda = clues.driver;
  at.images.toolkit = clues.toolkit;
  at.process.python_version = clues.python_release;
  at.process.windows = clues.of_windows();
  at.package.platform = at.process.windows ? "windows x86_64" : "";
  at.process.interpreter = clues.has("portable") ? R"(.\python_embeded\python.exe -s)" : "";
  at.process.python_env = environment.known() ? environment : python_environment(other.file, {}, false);
  FixDrafts fixes(1);
  FixDraft& fix = fixes.front();
  std::optional<FixDraft> matched;
  if (!other.row->built_on.empty()) matched = match_extension(other, at.process.python_env);
  if (matched) {
    fix = std::move(*matched);
  } else {
    std::string pip = owner_of(other.file);
    for (const SoftwareRow& row : software())
      if (pip.empty() && contains(other.software, row.package) && row.package != other.row->built_on &&
          !row.pip.empty())
        pip = row.pip;
    const TemplateWords words = {{"torch_index", torch_index(at)},
                                 {"pip", pip.empty() ? "PACKAGE" : shell_quote(pip)}};
    fix.kind = FixKind::environment;
    fix.title = expand(other.row->remedy, words);
    if (!other.row->command.empty()) {
      fix.title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(fix.title.front())));
      fix.steps = commands_of(other.row->command, words);
    }
  }
  if (at.process.windows) keep_for_windows(at, fixes);
  Advice advice = printed(at, {std::move(fixes), {}, {}});
  return {other.line, other.quote, other.part, std::string(other.row->what), std::move(advice.fixes.front())};
}

}  // namespace kshim::verbs

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/other_failure.h"

#include <cctype>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/log_diagnosis.h"
#include "analyzer/owner/databases.h"
#include "analyzer/owner/distributions.h"
#include "analyzer/owner/finder.h"

namespace kshim::verbs {
namespace {

std::string_view title_of(std::string_view distribution) {
  const data::InstallerRow* row = data::find_installer(distribution, "pip");
  return row != nullptr ? row->title : distribution;
}

/// The distribution that brought the file: by RECORD, else by the name of the file.
std::string owner_of(const std::string& file) {
  if (file.empty()) return {};
  owner::Finder finder;
  if (const auto& package = finder.of(file); package && package->manager == "pip") return package->name;
  const data::BuildRow* build = data::find_build("", file);
  return build == nullptr ? std::string() : std::string(build->distribution);
}

/// "own" of ".../site-packages/own/_C.cpython-311-x86_64-linux-gnu.so"; empty where it is not installed.
std::string module_of(const std::string& file) {
  constexpr std::string_view kFolder = "-packages/";
  const std::size_t at = file.find(kFolder);
  if (at == std::string::npos) return {};
  const std::string rest = file.substr(at + kFolder.size());
  return rest.substr(0, rest.find_first_of("/."));
}

/// An extension and what it is built on, of two releases: what its metadata asks for decides, else its newest
/// release. nullopt where the environment is not at hand.
std::optional<advise::FixDraft> match_extension(const input::OtherFailure& other,
                                                const owner::PythonEnvironment& environment) {
  const std::vector<owner::Distribution> there = distributions_in(environment);
  const owner::Distribution* owner = owner::find_distribution(there, owner_of(other.file));
  const owner::Distribution* base = owner::find_distribution(there, other.row->built_on);
  if (owner == nullptr || base == nullptr) return std::nullopt;
  core::TemplateWords words = {{"owner", core::shell_quote(owner->name)},
                               {"version", owner->version},
                               {"base", std::string(title_of(base->name))},
                               {"base_version", base->version},
                               {"base_package", base->name}};
  const data::ProjectName project(base->name);
  const auto asked = [&](std::string_view range) {
    words.emplace_back("range", range);
    return advise::fix_of("match-extension/asked", words);
  };
  for (const owner::Demand& demand : owner->demands)
    if (demand.project == project && owner::exclude_each_other(demand.range, "==" + base->version))
      return asked(demand.range);
  const std::string distribution = data::wheel_name(owner->name).distribution;
  const data::ReleaseNeedRow* own = nullptr;
  const data::ReleaseNeedRow* fitting = nullptr;
  for (const data::ReleaseNeedRow& row : data::release_needs()) {
    if (row.distribution != distribution || row.package != base->name) continue;
    if (data::is_within(owner->version, row.first, row.last)) own = &row;
    if (!owner::exclude_each_other(row.range, "==" + base->version)) fitting = &row;
  }
  if (fitting != nullptr && fitting != own) {
    words.emplace_back("release", fitting->last);
    return advise::fix_of("match-extension/fitting", words);
  }
  if (own != nullptr && own != fitting) return asked(own->range);
  return advise::fix_of("match-extension/newest", words);
}

}  // namespace

// As far as it depends on what stands beside it.
OtherAnswer other_answer(const input::LogFacts& clues, const input::OtherFailure& other,
                         const owner::PythonEnvironment& environment) {
  diagnose::Facts at;
  if (!clues.devices.empty()) at.gpu.cc = clues.devices.front().cc;
  at.driver.cuda = clues.driver;
  at.images.toolkit = clues.toolkit;
  at.process.python_version = clues.python_release;
  at.process.windows = clues.of_windows();
  at.package.platform = at.process.windows ? "windows x86_64" : "";
  at.process.interpreter = clues.own_python;
  at.process.python_env =
      environment.known() ? environment : owner::python_environment(other.file, {}, false);
  advise::FixDrafts fixes(1);
  advise::FixDraft& fix = fixes.front();
  std::optional<advise::FixDraft> matched;
  if (!other.row->built_on.empty()) matched = match_extension(other, at.process.python_env);
  if (matched) {
    fix = std::move(*matched);
  } else {
    std::string pip = owner_of(other.file);
    for (const data::SoftwareRow& row : data::software())
      if (pip.empty() && core::contains(other.software, row.package) && row.package != other.row->built_on &&
          !row.pip.empty())
        pip = row.pip;
    // The line names no package, and the log one beside what it is built on.
    const std::string_view base = other.row->built_on;
    if (const auto* only = pip.empty() && !base.empty() ? package_beside(clues, nullptr, base) : nullptr)
      pip = only->known_as();
    // Of what no table knows, its module.
    if (pip.empty()) pip = module_of(other.file);
    // Of what no index has, there is the source.
    const std::string source =
        pip.empty() || base.empty() || data::comes_from_index(pip) ? "" : std::exchange(pip, ".");
    const core::TemplateWords words = {{"torch_index", advise::torch_index(at)},
                                       {"pip", pip.empty() ? "PACKAGE" : core::shell_quote(pip)},
                                       {"file", other.file.empty() ? "NAME" : core::shell_quote(other.file)}};
    fix.kind = core::FixKind::environment;
    fix.title = core::expand(other.row->remedy, words);
    if (!source.empty()) fix.title += fmt::format(", in a checkout of {}", source);
    // By its own index or its own build, as where it asks for a library of another CUDA.
    advise::FixDrafts ways;
    if (base == "torch" && !pip.empty()) {
      at.cause = core::Cause::library_not_found;
      at.package.name = source.empty() ? pip : source;
      at.package.torch_build = diagnose::torch_build_of(clues);
      at.process.shows.assign(clues.shows.begin(), clues.shows.end());
      advise::add_other_ways(at, ways);
    }
    if (!ways.empty()) {
      fix = std::move(ways.front());
    } else if (!other.row->command.empty()) {
      fix.title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(fix.title.front())));
      fix.steps = advise::commands_of(other.row->command, words);
    }
  }
  if (at.process.windows) advise::keep_for_windows(at, fixes);
  advise::Advice advice = advise::printed(at, {std::move(fixes), {}, {}});
  return {other.line, other.quote, other.part,
          core::expand(other.row->what, {{"file", other.file.empty() ? "a DLL" : other.file}}),
          std::move(advice.fixes.front())};
}

}  // namespace kshim::verbs

// SPDX-License-Identifier: Apache-2.0
// What is installed has its say in what is proposed: an owner asks for one release of a package, and a
// package has no extra that it had not when it was made.
#include "analyzer/advise/fixes.h"
#include "analyzer/owner/distributions.h"

namespace kshim::advise {
using data::ProjectName;
using owner::Distribution;
using say::Install;
using say::Requirement;

namespace {

struct Owner {
  const Distribution* distribution;
  std::string range;
};

/// Those that ask for another release of it than the step brings.
std::vector<Owner> objecting(const std::vector<Distribution>& there, const Requirement& package) {
  std::vector<Owner> out;
  if (package.release.empty()) return out;
  const ProjectName project(package.name);
  for (const Distribution& each : there)
    for (const owner::Demand& demand : each.demands)
      if (demand.project == project && owner::exclude_each_other(demand.range, package.release)) {
        out.push_back({&each, demand.range});
        break;
      }
  return out;
}

unsigned major_in(std::string_view release) {
  const std::size_t digit = std::min(release.find_first_of("0123456789"), release.size());
  return core::first_number<unsigned>(release.substr(digit)).value_or(0);
}

/// A library's major version is in the name of its file, which the owner links: another one does not serve
/// it.
bool changes_file(const Requirement& package, const Owner& owner) {
  return ProjectName(package.name).is_nvidias() && major_in(owner.range) != 0 &&
         (major_in(package.release) != major_in(owner.range));
}

/// pip takes "name" for done where it is there, whatever its extras were.
void install_newer(const std::vector<Distribution>& there, Install& step) {
  for (const Requirement& package : step.packages) {
    const Distribution* own = owner::find_distribution(there, package.name);
    if (own == nullptr || package.release.starts_with("==") || package.extras.empty()) continue;
    const std::vector<std::string> asked = core::split(package.extras, ",");
    const bool all = std::ranges::all_of(asked, [&](const std::string& extra) {
      return std::ranges::any_of(own->extras, [&](const std::string& each) {
        return ProjectName(each) == ProjectName(std::string(core::trim(extra)));
      });
    });
    const bool done =
        all && (package.release.empty() || !owner::exclude_each_other(package.release, "==" + own->version));
    if (done) std::erase(step.words, "--upgrade");
    if (!done && !core::contains(step.words, "--upgrade") && !core::contains(step.words, "--force-reinstall"))
      step.words.insert(step.words.begin(), "--upgrade");
  }
}

bool is_installed_by(const FixDraft& fix, std::string_view name) {
  return std::ranges::any_of(steps_of<Install>(fix), [&](const Install* step) {
    return std::ranges::any_of(step->packages, [&](const Requirement& package) {
      return ProjectName(package.name) == ProjectName(std::string(name));
    });
  });
}

}  // namespace

void keep_pins(const diagnose::Facts& at, AdviceDraft& advice) {
  const bool installs =
      std::ranges::any_of(advice.fixes, [](const FixDraft& fix) { return !steps_of<Install>(fix).empty(); });
  if (!installs || at.process.foreign) return;
  const std::vector<Distribution> there = distributions_in(at.process.python_env);
  if (there.empty()) return;
  std::set<std::string> deciding;  // owners whose library it is
  const auto is_kept = [&](FixDraft& fix) {
    std::set<std::string> along;
    std::vector<std::string> held;
    for (Install* step : steps_of<Install>(fix)) {
      if (!step->environment.empty()) continue;
      install_newer(there, *step);
      for (const Requirement& package : step->packages)
        for (const Owner& owner : objecting(there, package)) {
          if (changes_file(package, owner)) {
            deciding.insert(owner.distribution->name);
            advice.remarks.push_back(fmt::format("{} asks for {}{}, and takes no other major version.",
                                                 owner.distribution->label(), package.name, owner.range));
            return false;
          }
          if (ProjectName(package.name).is_nvidias() || is_installed_by(fix, owner.distribution->name))
            continue;
          if (along.insert(core::shell_quote(owner.distribution->name)).second)
            held.push_back(
                fmt::format("{} asks for {}{}", owner.distribution->label(), package.name, owner.range));
          along.insert(core::shell_quote(package.name + package.release));
        }
    }
    if (along.empty()) return true;
    // pip then takes the release of each that asks for what the step before brought.
    fix.steps.push_back(say::command_of(
        "pip install --upgrade {packages}",
        {{"packages", core::join(std::vector<std::string>(along.begin(), along.end()), " ")}}));
    fix.caveat = core::join(held, "; ") + (fix.caveat.empty() ? "" : "; ") + fix.caveat;
    return true;
  };
  FixDrafts kept;
  for (FixDraft& fix : advice.fixes)
    if (is_kept(fix)) kept.push_back(std::move(fix));
  advice.fixes = std::move(kept);
  for (const std::string& owner : deciding)
    if (const data::WheelName wheel =
            data::wheel_name(owner, owner::find_distribution(there, owner)->version);
        !wheel.distribution.empty())
      add_wheel_fix(at, advice.fixes, wheel.distribution);
}

}  // namespace kshim::advise

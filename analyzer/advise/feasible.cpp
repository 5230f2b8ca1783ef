// SPDX-License-Identifier: Apache-2.0
// What can be done here, and what a fix takes for granted: questions asked of its steps.
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/owner/distributions.h"

namespace kshim::advise {
using core::Assumed;
using core::FixKind;
using diagnose::Facts;
using say::Command;
using say::Install;

using image::Version;

Version least_source_cuda(const Facts& at) {
  const std::string distribution = wheel_of(at).distribution;
  Version least;
  for (const data::SourceNeedRow& row : data::source_needs()) {
    if (row.distribution == distribution && (!least.known() || row.oldest_cuda < least))
      least = row.oldest_cuda;
  }
  return least;
}

Version driver_limit(const Facts& at) {
  // A Jetson whose JetPack has ended: what the log names is of its JetPack.
  const data::GpuRow* gpu = gpu_of(at);
  const bool jetson = !at.driver.cuda.known() && gpu != nullptr && gpu->tegra &&
                      !data::can_ever_run(at.gpu.cc, data::toolkits().back().version);
  return jetson ? at.images.toolkit : at.driver.cuda;
}

namespace {

/// 12.0 of `cupy-cuda12x` and `jax[cuda12]`, 11.8 of an index with cu118: the first CUDA that a text names.
Version cuda_in(std::string_view text) {
  for (std::size_t at = text.find("cu"); at != text.npos; at = text.find("cu", at + 2)) {
    std::string_view rest = text.substr(at + 2);
    for (const std::string_view part : {"da", "-"})
      if (rest.starts_with(part)) rest.remove_prefix(part.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 2 || digits == 3) return cuda_of(fmt::format("cu{}", rest));
  }
  return {};
}

/// What the packages or their indexes are built for; unknown where they name no CUDA.
Version cuda_of(const Command& command) {
  std::vector<std::string> texts;
  for (const say::Step& step : command.steps)
    if (const Install* install = std::get_if<Install>(&step.action)) {
      for (const say::Requirement& package : install->packages)
        texts.insert(texts.end(), {package.name, package.extras});
      texts.insert(texts.end(), install->indexes.begin(), install->indexes.end());
    }
  for (const std::string& text : texts)
    if (const Version cuda = cuda_in(text); cuda.known()) return cuda;
  return {};
}

/// The package that is to be of a release which PyPI does not have; empty: there is none.
std::string_view unpublished_in(const Command& command) {
  for (const say::Step& step : command.steps)
    if (const Install* install = std::get_if<Install>(&step.action))
      for (const say::Requirement& package : install->packages) {
        const std::string_view release = package.release;
        const bool pinned = release.starts_with("==") || release.starts_with("~=");
        for (const data::FirstReleaseRow& row : data::first_releases())
          if (pinned && package.name == row.package &&
              !data::is_on_pypi(row.package,
                                release.substr(2, release.find_first_not_of("0123456789.*", 2) - 2)))
            return row.package;
      }
  return {};
}

bool pins_release(const FixDraft& fix) {
  return std::ranges::any_of(steps_of<Install>(fix), [](const Install* install) {
    return std::ranges::any_of(
        install->packages, [](const say::Requirement& package) { return package.release.starts_with("=="); });
  });
}

bool is_feasible(const Facts& at, const FixDraft& fix) {
  if (fix.system == "linux" && platform_of(at).starts_with("windows")) return false;
  if (!fix.cuda.known()) return true;
  const bool of_source = fix.id == "rebuild" && comes_built(at);
  if (of_source && fix.cuda < least_source_cuda(at)) return false;
  const data::GpuRow* gpu = gpu_of(at);
  // A Jetson has the driver of its JetPack, and no other.
  return gpu != nullptr && gpu->tegra ? data::can_run(at.gpu.cc, driver_limit(at), fix.cuda)
                                      : data::can_ever_run(at.gpu.cc, fix.cuda);
}

/// The first release on PyPI for a newer CUDA than the driver runs, of a project that has one of each release
/// there; where the driver is not known, than that of the library that is missing, or 12.
std::string_view first_beyond_driver(const Facts& at, std::string_view distribution) {
  unsigned limit = at.driver.cuda.known() ? at.driver.cuda.major : 0;
  const auto asked = at.call.said.find("library_major");
  if (limit == 0 && asked != at.call.said.end() && at.call.said.contains("cuda_packages"))
    if (const auto major = core::first_number<unsigned>(asked->second)) limit = std::max(12U, *major);
  if (limit == 0) return {};
  const std::string platform = platform_of(at);
  for (const data::WheelDefaultRow& row : data::wheel_defaults())
    if (row.distribution == distribution && row.platform == platform &&
        advise::cuda_of(row.variant).major > limit)
      return row.first;
  return {};
}

/// Of a release that is not named, pip takes the newest.
void keep_for_driver(const Facts& at, Install& step) {
  for (say::Requirement& package : step.packages) {
    const auto beyond = first_beyond_driver(at, data::wheel_name(package.name).distribution);
    if (!package.release.empty() || beyond.empty()) continue;
    const std::string whole =
        package.name + (package.extras.empty() ? "" : fmt::format("[{}]", package.extras));
    package.release = fmt::format("<{}", beyond);
    for (std::string& word : step.words)
      if (say::unquoted(word) == whole) word = core::shell_quote(whole + package.release);
  }
}

const data::FirstReleaseRow* first_release(const say::Requirement& package) {
  const std::string whole =
      package.extras.empty() ? package.name : fmt::format("{}[{}]", package.name, package.extras);
  return data::first_row(data::first_releases(), [&](const auto& row) { return row.package == whole; });
}

/// The first release with these extras is for a newer CUDA.
bool lacks_extras(const Facts& at, const say::Requirement& package) {
  const data::FirstReleaseRow* first = first_release(package);
  if (first == nullptr) return false;
  const std::string_view beyond = first_beyond_driver(at, data::wheel_name(package.name).distribution);
  return !beyond.empty() && data::compare_releases(beyond, first->first) <= 0;
}

/// The first release of the package is for a newer Python than this one, and so is all that is published
/// today where this one is of 2.
bool lacks_python(const Facts& at, const say::Requirement& package) {
  const std::string& python = at.process.python_version;
  if (python.empty() || python.starts_with("2.")) return !python.empty();
  const data::FirstReleaseRow* first = first_release(package);
  return first != nullptr && !first->python.empty() && data::compare_releases(python, first->python) < 0;
}

/// pip would install nothing, or what is too old for the fix: that goes into an environment of a newer
/// Python.
void keep_for_python(const Facts& at, FixDraft& fix) {
  constexpr std::string_view kPython = "3.12";  // every row of first_releases with a Python has wheels for it
  const auto steps = steps_of<Install>(fix);
  if (std::ranges::none_of(steps, [&](const Install* step) {
        return step->tool != "conda" && step->environment.empty() &&
               std::ranges::any_of(step->packages, [&](const auto& each) { return lacks_python(at, each); });
      }))
    return;
  fix.title += fmt::format(" in a new environment of Python {}", kPython);
  add_new_environment(kPython, fix);
}

// pip takes what is there for done: "Requirement already satisfied".
bool is_satisfied(const Facts& at, const Install& step) {
  if (step.tool == "conda" || !step.environment.empty() || step.packages.empty() ||
      std::ranges::any_of(step.words, [](std::string_view word) {
        return word == "--upgrade" || word == "--force-reinstall" || word.starts_with("--no-binary");
      }))
    return false;
  return std::ranges::all_of(step.packages, [&](const say::Requirement& package) {
    const auto there = std::ranges::find_if(at.process.installed, [&](const auto& row) {
      return data::ProjectName(row.first) == data::ProjectName(package.name);
    });
    return there != at.process.installed.end() && package.extras.empty() &&
           (package.release.empty() || !owner::exclude_each_other(package.release, "==" + there->second));
  });
}

bool is_void(const Facts& at, const FixDraft& fix) {
  const auto steps = steps_of<Install>(fix);
  for (const Install* step : steps)
    if (step->tool != "conda" && step->environment.empty() &&
        std::ranges::any_of(step->packages, [&](const auto& each) { return lacks_extras(at, each); }))
      return true;
  return !steps.empty() && steps.size() == fix.steps.size() &&
         std::ranges::all_of(steps, [&](const Install* step) { return is_satisfied(at, *step); });
}

bool depends_on(const Facts& at, const FixDraft& fix, Assumed what) {
  const bool chosen = fix.id == "install-build";  // for this GPU or driver
  switch (what) {
    case Assumed::gpu:
      return chosen || fix.needs(say::need::gpu);
    case Assumed::cuda:
      return fix.cuda.known() && !chosen && !at.driver.cuda.known();
    case Assumed::driver:
      return fix.cuda.known() && fix.kind == FixKind::reinstall && at.images.toolkit.major < fix.cuda.major;
    case Assumed::system:
      return fix.needs(say::need::system);
    case Assumed::package_manager:
      return fix.needs(say::need::manager);
    case Assumed::python:
      return chosen && pins_release(fix);
  }
  return false;
}

// The fix stays right, and the package is not the way to it: false, and the command goes.
bool keeps_commands(FixDraft& fix) {
  const std::size_t before = fix.steps.size();
  for (const Command& command : fix.steps)
    if (const std::string_view package = unpublished_in(command); !package.empty())
      add_clause(fix.caveat, fmt::format("PyPI has no {} as old as that", package));
  std::erase_if(fix.steps, [](const Command& command) { return !unpublished_in(command).empty(); });
  return fix.steps.size() == before;
}

}  // namespace

void note_assumed(const Facts& at, FixDrafts& fixes) {
  for (FixDraft& fix : fixes)
    for (const Assumed what : at.process.unsaid)
      if (depends_on(at, fix, what)) fix.assumed.push_back(what);
}

void keep_feasible(const Facts& at, FixDrafts& fixes) {
  for (FixDraft& fix : fixes)
    for (Install* step : steps_of<Install>(fix))
      if (step->indexes.empty() && step->tool != "conda") keep_for_driver(at, *step);
  for (FixDraft& fix : fixes) keep_for_python(at, fix);
  for (FixDraft& fix : fixes)
    if (!fix.cuda.known() && fix.kind == FixKind::reinstall && !fix.steps.empty())
      fix.cuda = cuda_of(fix.steps.back());
  std::erase_if(fixes, [&](const FixDraft& fix) { return !is_feasible(at, fix) || is_void(at, fix); });
  std::stable_partition(fixes.begin(), fixes.end(), keeps_commands);
  // A driver that was too old for one build is not asked to run a newer one.
  if (at.cause == core::Cause::ptx_newer_than_driver && !at.driver.cuda.known())
    std::erase_if(fixes, [&](const FixDraft& fix) {
      return fix.kind == FixKind::reinstall && fix.cuda.known() && !(fix.cuda < at.images.toolkit);
    });
  // What the driver does not run is no fix beside one that it does.
  const auto beyond = [&](const FixDraft& fix) {
    return fix.kind == FixKind::reinstall && !data::can_run(at.gpu.cc, at.driver.cuda, fix.cuda);
  };
  const auto runs = [&](const FixDraft& fix) { return !beyond(fix) && fix.kind != FixKind::fallback; };
  if (std::ranges::any_of(fixes, runs)) std::erase_if(fixes, beyond);
  for (FixDraft& fix : fixes) {
    if (data::can_run(at.gpu.cc, at.driver.cuda, fix.cuda)) continue;
    const data::ToolkitRow* row = data::toolkit_at_most(fix.cuda);
    const std::string_view driver = fix.cuda.major >= 11 ? oldest_driver(at, fix.cuda.major)
                                    : row != nullptr     ? row->driver
                                                         : "";
    if (!driver.empty())
      add_clause(fix.caveat,
                 fmt::format("it needs driver {} or newer, and yours is for CUDA {}",
                             say::driver_release(driver, has_windows_driver(at)), name(at.driver.cuda)));
  }
}

}  // namespace kshim::advise

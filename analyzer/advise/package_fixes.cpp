// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/program.h"

namespace kshim::advise {
using core::shell_quote;
using data::Pip;
using data::ToolkitRow;
using diagnose::Facts;
using owner::kEditable;

std::string extension_folder(const Facts& at) {
  if (at.file.path.find("/../") != std::string::npos) return {};
  constexpr std::string_view kCache = "/torch_extensions/";
  const std::size_t cache = at.file.path.find(kCache);
  if (cache == std::string::npos || at.file.path.ends_with('/')) return {};
  const std::size_t slash = at.file.path.rfind('/');
  return slash > cache + kCache.size() ? at.file.path.substr(0, slash) : std::string();
}

void add_extension_fix(const Facts& at, FixDrafts& fixes) {
  const std::string folder = extension_folder(at);
  if (folder.empty()) return;
  fixes.push_back(fix_of("delete-compiled-extension",
                         {{"name", std::string(core::basename_of(folder))},
                          {"removable", at.file.removable.empty() ? "" : shell_quote(at.file.removable)}}));
}

namespace {

// The build has no code for a GPU as old as that.
bool is_below(const data::WheelRow& row, image::ComputeCapability cc) {
  return std::ranges::all_of(row.images, [&](const image::Candidate& image) { return cc < image.arch.cc; });
}

// The releases of a project, under all of its names, are known, and none was built for a GPU as old as that.
bool never_had_code(std::string_view distribution, image::ComputeCapability cc, std::string_view platform) {
  if (distribution.empty() || !data::knows_wheels_of(distribution, platform)) return false;
  const auto has = [&](std::string_view name) { return !data::wheels_serving(name, cc, platform).empty(); };
  if (has(distribution)) return false;
  for (const data::SiblingRow& row : data::siblings())
    if (row.distribution == distribution && has(row.sibling)) return false;
  // One that came before the oldest row may have had it: only where that row is of the project's beginning.
  return std::ranges::all_of(data::wheels(), [&](const data::WheelRow& row) {
    return row.distribution != distribution || is_below(row, cc);
  });
}

}  // namespace

std::string called(const Facts& at, std::string_view name) {
  const std::string& project = at.package.project;
  if (!project.empty() && (name.empty() || at.package.vendored)) return project;
  return name.empty() ? "the program" : std::string(name);
}

void add_other_build_fix(const Facts& at, FixDrafts& fixes) {
  const std::string& named = at.package.name.empty() ? at.call.extension : at.package.name.shown();
  const std::string what = called(at, named);
  if (!at.gpu.cc) return fixes.push_back(fix_of("have-code-built/package", {{"what", what}}));
  if (never_had_code(wheel_of(at).distribution, *at.gpu.cc, platform_of(at)))
    return fixes.push_back(fix_of("use-newer-gpu", {{"what", what}, {"gpu", sm_name(*at.gpu.cc)}}));
  const std::string target = sm_name(*at.gpu.cc);
  fixes.push_back(fix_of("take-release-with-code",
                         {{"what", what},
                          {"gpu", target},
                          {"cuda", toolkits_with_code(*at.gpu.cc).value_or("another CUDA")},
                          {"gencode", fmt::format("arch=compute_{0},code=sm_{0}", target.substr(3))}}));
}

void add_package_fix(const Facts& at, FixDrafts& fixes) {
  const std::string& manager = at.package.manager;
  const bool conda = manager == "conda";
  const bool dpkg = manager == "dpkg";
  if (at.package.name.empty() || (!conda && !dpkg && manager != "rpm") ||
      core::contains(core::mapped(fixes, &FixDraft::kind), core::FixKind::reinstall))
    return;
  fixes.push_back(fix_of(
      conda  ? "take-other-build/conda"
      : dpkg ? "take-other-build/dpkg"
             : "take-other-build/rpm",
      {{"name", at.package.name.shown()},
       {"package", shell_quote(at.package.name.shown())},
       {"channel", shell_quote(at.package.channel.empty() ? "conda-forge" : at.package.channel)},
       {"prefix",
        at.package.environment.empty() ? "" : fmt::format("-p {} ", shell_quote(at.package.environment))}}));
}

namespace {

std::string quoted(std::string_view source) {
  if (!source.starts_with(kEditable)) return shell_quote(source);
  return std::string(kEditable) + shell_quote(source.substr(kEditable.size()));
}

}  // namespace

say::Command install_from(std::string_view source) {
  return say::command_of("{pip} {source}",
                         {{"pip", std::string(say::pip_install(Pip::isolated))}, {"source", quoted(source)}});
}

RecipeCommand command_for(say::Build build, std::string_view source, std::string_view project) {
  const data::RecipeRow& recipe = *build.recipe;
  const bool pips = recipe.pip == Pip::here || recipe.pip == Pip::isolated;
  const std::string folder = owner::folder_of_source(source);
  if (!source.empty() && (pips || (!folder.empty() && !recipe.where.empty()))) {
    build.checkout = shell_quote(folder);
    build.source = pips                            ? quoted(source)
                   : source.starts_with(kEditable) ? std::string(kEditable) + "."
                                                   : std::string(".");
    build.pattern = recipe.command.substr(0, recipe.command.find("{pip}"));
    if (!pips) build.pattern.insert(0, "cd {folder} && ");
    if (core::contains(recipe.command, "{pip}")) build.pattern += "{pip} {source}";
    std::string caveat(recipe.caveat);
    if (!folder.empty())
      add_clause(caveat,
                 "what an earlier build left in that folder (build/, where it holds no sources) may pass for "
                 "up to date: delete it first");
    return {command_of(std::move(build)), std::move(caveat)};
  }
  std::string where(recipe.where);
  if (recipe.pip == Pip::here && build.package == say::Build{}.package) {
    // pip builds the checkout itself: there is no index to choose from.
    constexpr std::string_view kFromSource = " --no-binary :all:";
    build.pattern = recipe.command;
    if (const std::size_t at = build.pattern.find(kFromSource); at != std::string::npos)
      build.pattern.erase(at, kFromSource.size());
    if (recipe.id == "extension" && !project.empty())
      where = fmt::format("run it in a checkout of {}", project);
  }
  add_clause(where, recipe.caveat);
  return {command_of(std::move(build)), std::move(where)};
}

namespace {

bool is_of(const data::WorkaroundRow& row, const Facts& at) {
  return is_shown(row.when, at) &&
         std::ranges::any_of(core::split(row.package, " "), [&](const std::string& each) {
           return at.package.name == each || at.package.software == each;
         });
}

}  // namespace

bool has_other_ways(const Facts& at) {
  return std::ranges::any_of(data::workarounds(), [&](const data::WorkaroundRow& row) {
    return is_of(row, at) && (row.cause == at.cause || row.cause != Cause::library_not_found);
  });
}

namespace {

// "1.10.0+cu113", as the folders of an index are named: of what is installed, or of the log.
std::string torch_build(const Facts& at) {
  std::string build = at.package.torch_build;
  for (const auto& [name, version] : at.process.python_env.installed)
    if (name == "torch") build = version;
  const std::size_t plus = build.find('+');
  const std::size_t patch = build.find('.', build.find('.') + 1);
  if (plus == std::string::npos || patch == std::string::npos || patch > plus) return {};
  return build.substr(0, patch) + ".0" + build.substr(plus);
}

// CuPy has a wheel for each minor release up to CUDA 11.1, and [ctk] from CUDA 12 on.
std::string cupy_for(image::Version driver) {
  if (!driver.known() || driver.major >= 12) return "cupy-cuda12x[ctk]";
  return driver.major == 11 && driver.minor >= 2 ? "cupy-cuda11x"
                                                 : fmt::format("cupy-cuda{}{}", driver.major, driver.minor);
}

}  // namespace

bool add_other_ways(const Facts& at, FixDrafts& fixes) {
  const ToolkitRow* toolkit = toolkit_that_driver_reads(at);
  const std::string build = torch_build(at);
  const std::string variant = build.substr(std::min(build.find('+'), build.size()));
  const std::string package(at.package.name.empty() ? at.package.software : at.package.name.shown());
  const core::TemplateWords words = {
      {"package", core::shell_quote(package)},
      {"pinned",
       core::shell_quote(at.package.version.empty() ? package : package + "==" + at.package.version)},
      {"torch_minor", build.substr(0, build.find('.', build.find('.') + 1))},
      {"torch_variant", variant.empty() ? variant : variant.substr(1)},
      {"torch_build", build.empty() ? "X.Y.0+cuNNN" : build},
      {"unread",
       build.empty() ? "python -c 'import torch; print(torch.__version__)' says which that is; " : ""},
      {"cupy", cupy_for(at.driver.cuda)},
      {"last_cuda", name(newest_cuda_for(at))},
      {"torch_index", torch_index(at)},
      {"cuda", name(toolkit != nullptr ? toolkit->version : image::Version{})}};
  for (const data::WorkaroundRow& row : data::workarounds()) {
    const bool needs_cuda = core::asks_for(row.command, "cuda");
    const bool needs_drop = core::asks_for(row.title, "last_cuda");
    // What lies on an index of its own is found by the PyTorch that is there.
    const bool unread = variant.empty() || variant == "+cuNNN";
    if (unread && (core::asks_for(row.command, "torch_variant") ||
                   (at.cause == Cause::library_not_found && core::asks_for(row.command, "torch_build"))))
      continue;
    if (!is_of(row, at) || row.cause != at.cause || (needs_cuda && toolkit == nullptr) ||
        (needs_drop && last_before_dropped(at) == nullptr))
      continue;
    fixes.push_back(fix_of_row(row, "workaround", words, &at.process.program));
  }
  return has_other_ways(at);
}

namespace {

// "2.7" is the tag v2.7.0, and what was read of an installed release is its own.
std::string tag_of(std::string_view release) {
  return fmt::format("v{}{}", release, std::count(release.begin(), release.end(), '.') < 2 ? ".0" : "");
}

}  // namespace

image::Version source_asks_beyond(const Facts& at) {
  const ToolkitRow* last = at.gpu.cc ? last_with_code_for(*at.gpu.cc) : nullptr;
  const image::Version least = least_source_cuda(at);
  return last != nullptr && last->version < least ? least : image::Version{};
}

bool add_source_build(const Facts& at, FixDrafts& fixes) {
  const data::BuildRow* build = data::find_build(at.package.name.normal(), at.file.path);
  if (!at.gpu.cc || build == nullptr || build->recipe != "torch_itself") return false;
  constexpr std::string_view kProject = "torch";
  const data::WheelName wheel = wheel_of(at);
  const auto source = data::source_release_for(kProject, data::is_plain(wheel.version) ? wheel.version : "",
                                               *at.gpu.cc, driver_limit(at), platform_of(at));
  if (!source) return false;
  const ToolkitRow* toolkit = data::find_toolkit(source->cuda);
  if (toolkit == nullptr) return false;
  std::vector<image::Candidate> have;
  for (const image::ComputeCapability cc : at.gpu.others)
    have.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  const auto plan = plan_build(have, *at.gpu.cc, *toolkit, at.driver.cuda);
  if (!plan) return false;
  const data::RecipeRow& recipe = data::find_recipe(build->recipe);
  const std::string cuda = name(source->cuda);
  const std::string_view beyond = data::first_beyond(kProject, source->cuda);
  const ToolkitRow* last = data::last_toolkit_for({*at.gpu.cc, image::Suffix::none});
  const bool dropped = last != nullptr && last != &data::toolkits().back() && !beyond.empty();
  std::vector<std::string> notes = {"it takes hours", "only this machine's GPUs get code"};
  if (is_below(*source->row, *at.gpu.cc))
    notes.emplace_back(
        "no published build that kshim knows has code for a GPU as old as this: whether all of the source "
        "compiles for it is not known");
  if (std::string keep = driver_to_keep(at); !keep.empty()) notes.push_back(std::move(keep));
  FixDraft fix = fix_of("build-from-source",
                        {{"release", std::string(source->release)},
                         {"cuda", cuda},
                         {"tag", tag_of(source->release)},
                         {"range", toolkit_range(*at.gpu.cc)},
                         {"gpu", sm_name(*at.gpu.cc)},
                         {"later", !dropped ? ""
                                            : fmt::format("; from {} on, the source asks for CUDA {}", beyond,
                                                          name(data::oldest_cuda_of(kProject, beyond)))},
                         {"notes", core::join(notes, "; ")}});
  fix.cuda = source->cuda;
  if (!source->same) fix.kind = core::FixKind::downgrade;
  fix.steps.push_back(command_of(say::Build{.recipe = &recipe,
                                            .plan = *plan,
                                            .pattern = fmt::format("cd pytorch && {}", recipe.command),
                                            .toolkit = "/usr/local/cuda-" + cuda}));
  fixes.push_back(std::move(fix));
  return true;
}

}  // namespace kshim::advise

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/program.h"

namespace kshim::advise {

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
                         {{"name", std::string(basename_of(folder))},
                          {"removable", at.file.removable.empty() ? "" : shell_quote(at.file.removable)}}));
}

namespace {

// The releases of a project, under all of its names, are known, and none was built for a GPU as old as that.
bool never_had_code(std::string_view distribution, image::ComputeCapability cc, std::string_view platform) {
  if (distribution.empty() || !knows_wheels_of(distribution, platform)) return false;
  const auto has = [&](std::string_view name) { return !wheels_serving(name, cc, platform).empty(); };
  if (has(distribution)) return false;
  for (const SiblingRow& row : knowledge().siblings)
    if (row.distribution == distribution && has(row.sibling)) return false;
  // One that came before the oldest row may have had it: only where that row is of the project's beginning.
  return std::ranges::all_of(wheels(), [&](const WheelRow& row) {
    return row.distribution != distribution ||
           std::ranges::all_of(row.images, [&](const image::Candidate& image) { return cc < image.arch.cc; });
  });
}

}  // namespace

void add_other_build_fix(const Facts& at, FixDrafts& fixes) {
  const std::string& named = at.package.name.empty() ? at.call.extension : at.package.name.shown();
  const std::string what = named.empty() ? "the program" : named;
  if (!at.gpu.cc) return fixes.push_back(fix_of("have-code-built/package", {{"what", what}}));
  if (never_had_code(wheel_of(at).distribution, *at.gpu.cc, platform_of(at)))
    return fixes.push_back(fix_of("use-newer-gpu", {{"what", what}, {"gpu", sm_name(*at.gpu.cc)}}));
  const ToolkitRow* last = last_with_code_for(*at.gpu.cc);
  const ToolkitRow* first = first_toolkit_for({*at.gpu.cc, image::Suffix::none});
  const bool dropped = last != nullptr && last != &toolkits().back();
  const std::string target = sm_name(*at.gpu.cc);
  const std::string cuda = dropped            ? fmt::format("CUDA {} or older", name(last->version))
                           : first != nullptr ? fmt::format("CUDA {} or newer", name(first->version))
                                              : "another CUDA";
  fixes.push_back(fix_of("take-release-with-code",
                         {{"what", what},
                          {"gpu", target},
                          {"cuda", cuda},
                          {"gencode", fmt::format("arch=compute_{0},code=sm_{0}", target.substr(3))}}));
}

void add_package_fix(const Facts& at, FixDrafts& fixes) {
  if (at.package.name.empty()) return;
  const std::string package = shell_quote(at.package.name.shown());
  FixDraft fix{{FixKind::reinstall,
                fmt::format("Take a build of {} that has code for this GPU", at.package.name.shown()),
                {},
                "",
                "",
                "take-other-build"}};
  const bool offered = std::any_of(fixes.begin(), fixes.end(),
                                   [](const FixDraft& each) { return each.kind == FixKind::reinstall; });
  if (offered) return;
  if (at.package.manager == "conda") {
    const TemplateWords words = {
        {"channel", shell_quote(at.package.channel.empty() ? "conda-forge" : at.package.channel)},
        {"prefix",
         at.package.environment.empty() ? "" : fmt::format("-p {} ", shell_quote(at.package.environment))},
        {"package", package}};
    fix.steps = {command_of("conda search -c {channel} {package}", words),
                 command_of("conda update {prefix?}-c {channel} {package}", words)};
    fix.why = "conda installed it, and what conda installed only conda replaces";
  } else if (at.package.manager == "dpkg") {
    fix.steps = {command_of("sudo apt-get update && sudo apt-get install --only-upgrade {package}",
                            {{"package", package}})};
    fix.why = "it is a package of the distribution";
  } else if (at.package.manager == "rpm") {
    fix.steps = {command_of("sudo dnf upgrade {package}", {{"package", package}})};
    fix.why = "it is a package of the distribution";
  } else {
    return;
  }
  fix.caveat = "whether a newer build has the code is not known: kshim scan says what is in it";
  fixes.push_back(std::move(fix));
}

namespace {

std::string quoted(std::string_view source) {
  if (!source.starts_with(kEditable)) return shell_quote(source);
  return std::string(kEditable) + shell_quote(source.substr(kEditable.size()));
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::vector<std::string> out;
  for (const std::string_view part : parts)
    if (!part.empty()) out.emplace_back(part);
  return join(out, "; ");
}

}  // namespace

Command install_from(std::string_view source) {
  return command_of("{pip} {source}",
                    {{"pip", std::string(pip_install(Pip::isolated))}, {"source", quoted(source)}});
}

RecipeCommand build(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words) {
  RecipeCommand out{expand_recipe(recipe, plan, words), joined({recipe.where, recipe.caveat})};
  if (recipe.pip != Pip::here || words.package != RecipeWords{}.package) return out;
  // pip builds the checkout itself: there is no index to choose from.
  constexpr std::string_view kFromSource = " --no-binary :all:";
  std::string pattern(recipe.command);
  if (const std::size_t at = pattern.find(kFromSource); at != std::string::npos) {
    pattern.erase(at, kFromSource.size());
    out.command = expand_recipe(recipe, plan, words, pattern);
  }
  if (recipe.id == "extension" && !words.project.empty())
    out.caveat = joined({fmt::format("run it in a checkout of {}", words.project), recipe.caveat});
  return out;
}

RecipeCommand build_from(std::string_view source, const RecipeRow& recipe, const BuildPlan& plan,
                         const RecipeWords& words) {
  const std::string folder = folder_of_source(source);
  const bool steps = recipe.pip != Pip::here && recipe.pip != Pip::isolated;
  if (steps && (folder.empty() || recipe.where.empty())) return build(recipe, plan, words);
  RecipeWords own = words;
  own.folder = shell_quote(folder);
  own.source = !steps                          ? quoted(source)
               : source.starts_with(kEditable) ? std::string(kEditable) + "."
                                               : std::string(".");
  std::string pattern(recipe.command.substr(0, recipe.command.find("{pip}")));
  if (steps) pattern = "cd {folder} && " + pattern;
  if (contains(recipe.command, "{pip}")) pattern += "{pip} {source}";
  const std::string_view left = folder.empty()
                                    ? std::string_view()
                                    : "what an earlier build left in that folder (build/, where it holds no "
                                      "sources) may pass for up to date: delete it first";
  return {expand_recipe(recipe, plan, own, pattern), joined({recipe.caveat, left})};
}

bool has_other_ways(const Facts& at) {
  return std::any_of(workarounds().begin(), workarounds().end(),
                     [&](const WorkaroundRow& row) { return at.package.name == row.package; });
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
  const TemplateWords words = {
      {"torch_build", build.empty() ? "X.Y.0+cuNNN" : build},
      {"unread",
       build.empty() ? "python -c 'import torch; print(torch.__version__)' says which that is; " : ""},
      {"cupy", cupy_for(at.driver.cuda)},
      {"cuda", image::to_name(toolkit != nullptr ? toolkit->version : image::Version{}).c_str()}};
  for (const WorkaroundRow& row : workarounds()) {
    if (at.package.name != row.package) continue;
    const bool needs_cuda = asks_for(row.command, "cuda");
    if (row.cause != at.cause || (needs_cuda && toolkit == nullptr)) continue;
    FixDraft& fix = fixes.emplace_back(FixDraft{{row.kind,
                                                 expand_filled(row.title, words),
                                                 {},
                                                 expand_filled(row.why, words),
                                                 expand_filled(row.caveat, words),
                                                 "workaround"}});
    fix.steps.push_back(command_of(row.command, words, &at.process.program));
  }
  return has_other_ways(at);
}

namespace {

// "2.7" is the tag v2.7.0, and what was read of an installed release is its own.
std::string tag_of(std::string_view release) {
  return fmt::format("v{}{}", release, std::count(release.begin(), release.end(), '.') < 2 ? ".0" : "");
}

// No published build had code for a GPU as old as that.
bool is_below(const WheelRow& row, image::ComputeCapability cc) {
  return std::all_of(row.images.begin(), row.images.end(),
                     [&](const image::Candidate& image) { return cc < image.arch.cc; });
}

}  // namespace

image::Version source_asks_beyond(const Facts& at) {
  const ToolkitRow* last = at.gpu.cc ? last_with_code_for(*at.gpu.cc) : nullptr;
  const image::Version least = least_source_cuda(at);
  return last != nullptr && last->version < least ? least : image::Version{};
}

bool add_source_build(const Facts& at, FixDrafts& fixes) {
  const BuildRow* build = find_build(at.package.name.normal(), at.file.path);
  if (!at.gpu.cc || build == nullptr || build->recipe != "torch_itself") return false;
  constexpr std::string_view kProject = "torch";
  const WheelName wheel = wheel_of(at);
  const auto source = source_release_for(kProject, is_plain(wheel.version) ? wheel.version : "", *at.gpu.cc,
                                         driver_limit(at), platform_of(at));
  if (!source) return false;
  const ToolkitRow* toolkit = find_toolkit(source->cuda);
  if (toolkit == nullptr) return false;
  std::vector<image::Candidate> have;
  for (const image::ComputeCapability cc : at.gpu.others)
    have.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  const auto plan = plan_build(have, *at.gpu.cc, *toolkit, at.driver.cuda);
  if (!plan) return false;
  RecipeWords words;
  words.toolkit = fmt::format("/usr/local/cuda-{}", name(source->cuda));
  words.nvcc = words.toolkit + "/bin/nvcc";
  FixDraft fix;
  fix.id = "build-from-source";
  fix.cuda = source->cuda;
  fix.kind = source->same ? FixKind::rebuild : FixKind::downgrade;
  fix.title =
      fmt::format("Build PyTorch {} from its source with CUDA {}", source->release, name(source->cuda));
  const RecipeRow& recipe = find_recipe(build->recipe);
  fix.steps = {command_of("git clone --recursive --branch {tag} https://github.com/pytorch/pytorch",
                          {{"tag", tag_of(source->release)}}),
               expand_recipe(recipe, *plan, words, fmt::format("cd pytorch && {}", recipe.command))};
  const std::string_view beyond = first_beyond(kProject, source->cuda);
  const ToolkitRow* last = last_toolkit_for({*at.gpu.cc, image::Suffix::none});
  const bool dropped = last != nullptr && last != &toolkits().back();
  fix.why = fmt::format("the nvcc of {} can target {}, and {} was published for CUDA {}",
                        toolkit_range(*at.gpu.cc), sm_name(*at.gpu.cc), source->release, name(source->cuda));
  if (dropped && !beyond.empty())
    fix.why += fmt::format("; from {} on, the source asks for CUDA {}", beyond,
                           name(oldest_cuda_of(kProject, beyond)));
  std::vector<std::string> notes = {"it takes hours", "only this machine's GPUs get code"};
  if (is_below(*source->row, *at.gpu.cc))
    notes.emplace_back(
        "no published build that kshim knows has code for a GPU as old as this: whether all of the source "
        "compiles for it is "
        "not "
        "known");
  if (const GpuRow* gpu = find_gpu(*at.gpu.cc); gpu != nullptr && gpu->last_branch != 0)
    notes.push_back(fmt::format("keep the driver within R{}, the last branch for {} GPUs", gpu->last_branch,
                                gpu->family));
  fix.caveat = join(notes, "; ");
  fixes.push_back(std::move(fix));
  return true;
}

}  // namespace kshim::advise

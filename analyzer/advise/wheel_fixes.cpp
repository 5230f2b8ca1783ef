// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/owner/distributions.h"

namespace kshim::advise {
using data::Basis;
using data::compare_releases;
using data::find_installer;
using data::InstallerRow;
using data::is_plain;
using data::is_within;
using data::WheelName;
using data::WheelRow;
using data::wheels;
using diagnose::Facts;

namespace {

using image::ComputeCapability;
using image::Version;

// "12.6", and "12" of a build that serves all of 12.
std::string cuda_text(std::string_view variant) {
  const Version cuda = cuda_of(variant);
  const bool fine =
      cuda.minor != 0 || std::ranges::count_if(variant, [](char c) { return c >= '0' && c <= '9'; }) > 2;
  return fine ? name(cuda) : std::to_string(cuda.major);
}

std::string image_that_serves(const WheelRow& row, ComputeCapability device) {
  const auto& images = row.images;
  const auto selection = image::select_image(images, {device, {}, {}});
  return name(images[selection.index]);
}

// Where the GPU is not known, it may be one that the build has nothing for.
std::string gpus_of(const WheelRow& row) {
  const auto& images = row.images;
  const auto [oldest, newest] = std::minmax_element(
      images.begin(), images.end(),
      [](const image::Candidate& a, const image::Candidate& b) { return a.arch.cc < b.arch.cc; });
  if (oldest == images.end()) return {};
  return fmt::format("its code is for GPUs of compute capability {} to {}.x: look first which yours has",
                     name(oldest->arch.cc), newest->arch.cc.major);
}

// Why it may be wrong what a row says of a release; empty where its file was read, or its maker says so.
std::string doubt_of(const WheelRow& row, std::string_view release) {
  switch (basis_of(row, release)) {
    case Basis::declared:
      return "it has that code by its build script";
    case Basis::interpolated:
      return fmt::format("not verified{}, only of other releases ({})",
                         release.empty() ? "" : fmt::format(" of {}", release), row.wheels);
    default:
      return {};
  }
}

std::string_view title_of(std::string_view distribution, std::string_view manager) {
  const InstallerRow* row = find_installer(distribution, manager);
  return row != nullptr ? row->title : distribution;
}

std::string caveat_for(const Facts& at, const WheelChoice& choice, const WheelName& wheel) {
  std::vector<std::string> parts;
  const Version cuda = cuda_of(choice.row->variant);
  if (at.gpu.cc && !choice.same && is_plain(wheel.version) && data::knows_wheels_of(wheel.distribution)) {
    const data::CompanionRow* refusing = nullptr;
    if (!release_serves(wheel, *at.gpu.cc, platform_of(at), &refusing))
      parts.push_back(fmt::format("no build of {} is known to have code for this GPU", wheel.version));
    else if (refusing != nullptr)
      parts.push_back(fmt::format("the {} {} that {} comes with does not serve this GPU", refusing->library,
                                  refusing->release, wheel.version));
  }
  const data::CompanionRow* row =
      at.gpu.cc ? refusing_companion(*choice.row, choice.release, *at.gpu.cc) : nullptr;
  if (row != nullptr)
    parts.push_back(fmt::format("its {} {} does not serve this GPU", row->library, row->release));
  if (!choice.installer->caveat.empty()) parts.emplace_back(choice.installer->caveat);
  if (!choice.row->note.empty()) parts.emplace_back(choice.row->note);
  if (const std::string_view driver = oldest_driver(at, cuda.major); cuda.known() && !driver.empty()) {
    if (!at.driver.cuda.known())
      parts.push_back(
          fmt::format("it needs driver {} or newer", say::driver_release(driver, has_windows_driver(at))));
  }
  const std::string_view oldest = data::oldest_python(wheel.distribution, choice.release);
  if (!at.process.python_version.empty() && !choice.same && !oldest.empty() &&
      compare_releases(at.process.python_version, oldest) < 0)
    parts.push_back(
        fmt::format("it needs Python {} or newer, and this is {}", oldest, at.process.python_version));
  if (std::string doubt = doubt_of(*choice.row, choice.release); !doubt.empty())
    parts.push_back(fmt::format("{}: kshim scan says what is in the file", doubt));
  return core::join(parts, "; ");
}

// The package to ask for: what failed is of it, or comes with it.
WheelName wanted(const Facts& at, std::string_view distribution) {
  WheelName wheel = wheel_of(at);
  if (!distribution.empty() && wheel.distribution != distribution && wheel.distribution != "pytorch-gpu") {
    wheel = {};
    wheel.distribution =
        at.package.manager == "conda" && distribution == "torch" ? "pytorch-gpu" : distribution;
  }
  return wheel;
}

// Always in quotes, which a release like 2.15.* needs.
std::string pinned(std::string_view name, std::string_view pin) {
  std::string out = core::shell_quote(fmt::format("{}{}", name, pin));
  return out.front() == '\'' ? out : fmt::format("'{}'", out);
}

// What `pip install` is to be told of PyTorch's packages, which are built for one another. Of those that are
// there, each is named; with its own version where the release stays: then pip exchanges what has to be, and
// nothing else is fetched again.
std::string torch_packages(const Facts& at, const WheelChoice& choice, const WheelName& wheel) {
  const std::string own = pinned(wheel.distribution, choice.pin);
  const auto& there = at.process.python_env.installed;
  std::string out;
  const auto add = [&out](std::string_view package) {
    out.append(out.empty() || package.empty() ? "" : " ").append(package);
  };
  if (there.empty()) {
    if (choice.same) add("--force-reinstall");
    for (const std::string_view name : {"torch", "torchvision", "torchaudio"})
      add(name == wheel.distribution ? std::string_view(own) : name);
    if (!choice.same) add(at.package.beside);
    return out;
  }
  const std::string_view variant = choice.row->variant;
  bool named = false;
  for (const auto& [name, version] : there) {
    named = named || name == wheel.distribution;
    if (choice.same) {
      add(pinned(name, fmt::format("=={}+{}", version.substr(0, version.find('+')), variant)));
    } else {
      add(name == wheel.distribution ? std::string_view(own) : std::string_view(name));
    }
  }
  if (!named) add(own);
  return out;
}

// What the release needs of other packages, as words of pip where another release of them is there or none is
// known.
struct Needs {
  std::string words;
  bool apart = false;
  std::string caveat;
};
Needs needs_of(const Facts& at, const WheelChoice& choice, const WheelName& wheel) {
  Needs out;
  const bool known = !choice.release.empty() && !choice.same;
  if (!known || at.package.manager == "conda") return out;
  const std::vector<owner::Distribution> there = distributions_in(at.process.python_env);
  const owner::Distribution* own = owner::find_distribution(there, at.package.name.normal());
  bool told = false;
  for (const data::ReleaseNeedRow& row : data::release_needs()) {
    if (row.distribution != wheel.distribution || !is_within(choice.release, row.first, row.last)) continue;
    told = true;
    const owner::Distribution* installed = owner::find_distribution(there, row.package);
    if (installed != nullptr && !owner::exclude_each_other(row.range, "==" + installed->version)) continue;
    out.words += fmt::format(" '{}{}'", row.package, row.range);
    out.apart = out.apart || (row.apart && installed != nullptr);
    out.caveat += fmt::format("{}{} {} needs {}{}", out.caveat.empty() ? "" : "; ", wheel.distribution,
                              choice.release, row.package, row.range);
  }
  if (!told && own != nullptr && !own->demands.empty() && compare_releases(choice.release, own->version) < 0)
    out.caveat = fmt::format(
        "what {} {} asks for of other packages is not known here: --dry-run shows what pip would change",
        wheel.distribution, choice.release);
  return out;
}

// The newest Python that the release has wheels for, where the one that is there is none of them.
std::string other_python(const Facts& at, const WheelChoice& choice, const WheelName& wheel) {
  const data::PythonRow* here = data::find_python(wheel.distribution, at.process.python_version);
  if (choice.same || choice.release.empty() || at.process.python_version.empty()) return {};
  if (here != nullptr && is_within(choice.release, here->first, here->last)) return {};
  return std::string(data::newest_python(wheel.distribution, choice.release));
}

// Title without its end, commands and caveat.
FixDraft install(const Facts& at, const WheelChoice& choice, const WheelName& wheel) {
  const Version cuda = cuda_of(choice.row->variant);
  const std::string& release = choice.release;
  FixDraft fix;
  fix.id = "install-build";
  fix.cuda = cuda;
  fix.kind = core::FixKind::reinstall;
  fix.title = fmt::format("Install {}{}{}", choice.installer->title, release.empty() ? "" : " " + release,
                          cuda.known() ? " for CUDA " + cuda_text(choice.row->variant) : "");
  // "faiss" is a module, and faiss-gpu-cu12 a package.
  const Needs needs = needs_of(at, choice, wheel);
  const bool is_package = core::contains(at.package.name.normal(), '-');
  const std::string installed = is_package ? at.package.name.shown() : std::string(wheel.distribution);
  fix.steps = commands_of(std::string(choice.installer->command) + needs.words,
                          {{"pin", choice.pin},
                           {"variant", std::string(choice.row->variant)},
                           {"major", std::to_string(cuda.major)},
                           {"cuda", name(cuda)},
                           {"packages", torch_packages(at, choice, wheel)},
                           {"installed", core::shell_quote(installed)}});
  fix.caveat = caveat_for(at, choice, wheel);
  if (!needs.caveat.empty()) fix.caveat = needs.caveat + (fix.caveat.empty() ? "" : "; " + fix.caveat);
  std::string python = other_python(at, choice, wheel);
  if (python.empty() && needs.apart)
    python =
        !at.process.python_version.empty() ? at.process.python_version : data::python_of_path(at.file.path);
  if (!python.empty()) {
    fix.title += fmt::format(" in a new environment of Python {}", python);
    add_new_environment(python, fix);
  }
  fix.arguments = {
      {"package", wheel.distribution}, {"release", release}, {"variant", std::string(choice.row->variant)}};
  return fix;
}

std::string_view what_serves(const Facts& at, const WheelChoice& choice) {
  return serves(*choice.row, *at.gpu.cc) == image::Choice::jit ? ", which has PTX for this GPU"
                                                               : ", which has code for this GPU";
}

// The leader that is there, with its variant: "torch" 2.7.1 cu128. Without a version where none is known.
WheelName leader_of(const Facts& at, std::string_view distribution) {
  std::string version = distribution == "torch" ? at.package.torch_build : "";
  for (const auto& [name, installed] : at.process.python_env.installed)
    if (name == distribution) version = installed;
  WheelName out = data::wheel_name(distribution, version);
  if (out.variant.empty()) out.variant = default_variant(out, platform_of(at));
  return out;
}

// The variants of a release that have code for the GPU.
std::vector<std::string_view> serving_variants(const WheelName& wheel, std::string_view platform,
                                               ComputeCapability device) {
  std::vector<std::string_view> out;
  for (const WheelRow& row : wheels())
    if (row.distribution == wheel.distribution && row.platform == platform &&
        is_within(wheel.version, row.first, row.last) && serves(row, device) != image::Choice::none)
      out.push_back(row.variant);
  return out;
}

// A package with a library for each CUDA, which takes that of its leader's build: the release with one for
// the leader that is there; else the leader's build for which it has one; else both. False where none is
// known.
bool add_follower_fix(const Facts& at, const WheelName& wheel, std::string_view leader_distribution,
                      FixDrafts& fixes) {
  const char* manager = manager_of(at);
  const std::string platform = platform_of(at);
  const WheelName leader = leader_of(at, leader_distribution);
  const WheelRow* there = row_of(at, leader);
  const std::string takes = fmt::format("{} takes the library for the CUDA that {} is built for",
                                        wheel.distribution, title_of(leader_distribution, manager));
  const auto add = [&](const WheelChoice& choice, const WheelName& name) {
    FixDraft fix = install(at, choice, name);
    fix.title += what_serves(at, choice);
    fix.why = fmt::format("its library for {} has {}", choice.row->variant,
                          image_that_serves(*choice.row, *at.gpu.cc));
    fix.caveat = takes + (fix.caveat.empty() ? "" : "; " + fix.caveat);
    fixes.push_back(std::move(fix));
  };
  if (there != nullptr && serves(*there, *at.gpu.cc) != image::Choice::none) {
    const auto choice = choose_wheel(at, wheel, at.driver.cuda, {there->variant});
    if (choice && !choice->same) {
      add(*choice, wheel);
      return true;
    }
  }
  WheelName other;
  other.distribution = leader_distribution;
  if (const auto variants = serving_variants(wheel, platform, *at.gpu.cc); !variants.empty()) {
    if (const auto choice = choose_wheel(at, other, at.driver.cuda, variants)) {
      FixDraft fix = install(at, *choice, other);
      fix.title += ", for which it has a library with code for this GPU";
      fix.why = fmt::format("the library of {} {} for {} has code for this GPU, and so has that build",
                            wheel.distribution, wheel.version, choice->row->variant);
      fix.caveat = takes + (fix.caveat.empty() ? "" : "; " + fix.caveat);
      fixes.push_back(std::move(fix));
      return true;
    }
  }
  const auto choice = choose_wheel(at, wheel, at.driver.cuda);
  if (!choice) return false;
  add(*choice, wheel);
  WheelName chosen = wheel;
  chosen.version = choice->release;
  const bool fits = there != nullptr && there->variant == choice->row->variant;
  if (const auto build =
          choose_wheel(at, other, at.driver.cuda, serving_variants(chosen, platform, *at.gpu.cc));
      build && !fits && !leader.version.empty()) {
    const FixDraft with = install(at, *build, other);
    FixDraft& fix = fixes.back();
    fix.title += fmt::format(", and {}{}", title_of(leader_distribution, manager), " for the same CUDA");
    fix.steps.insert(fix.steps.end(), with.steps.begin(), with.steps.end());
  }
  return true;
}

}  // namespace

void add_new_environment(std::string_view python, FixDraft& fix) {
  constexpr std::string_view kFolder = "new-env";
  std::vector<say::Command> steps = {
      say::command_of("uv venv --python {python} {folder}",
                      {{"python", std::string(python)}, {"folder", std::string(kFolder)}})};
  for (say::Install* install : steps_of<say::Install>(fix)) {
    if (install->tool == "conda") continue;
    install->environment = kFolder;
    steps.push_back({{{.action = std::move(*install)}}});
  }
  if (steps.size() > 1) fix.steps = std::move(steps);
}

bool add_wheel_fix(const Facts& at, FixDrafts& fixes, std::string_view distribution) {
  if (at.package.from_source) return false;
  if (!at.gpu.cc) return false;
  WheelName wheel = wanted(at, distribution);
  if (wheel.distribution.empty()) return false;
  if (find_installer(wheel.distribution, manager_of(at)) == nullptr || at.package.manager == "dpkg" ||
      at.package.manager == "rpm")
    return false;
  for (const data::CudaFollowerRow& row : data::cuda_followers())
    if (row.distribution == wheel.distribution)
      return add_follower_fix(at, wheel, row.leader, fixes) && is_plain(wheel.version);
  // What loads a library of NVIDIA's was built for one CUDA: its own comes first.
  std::vector<std::string_view> own;
  // What compiles at run time needs a compiler that knows the GPU.
  const bool compiles = at.cause == core::Cause::nvrtc_arch_unsupported;
  const auto is_own = [&](std::string_view variant) {
    const data::ToolkitRow* toolkit = data::toolkit_at_most(cuda_of(variant));
    return compiles ? toolkit != nullptr && builds_for(*toolkit, {*at.gpu.cc, image::Suffix::none})
                    : is_vendors(at) && cuda_of(wheel.variant).known() &&
                          cuda_of(variant).major == cuda_of(wheel.variant).major;
  };
  for (const WheelRow& row : wheels())
    if (row.distribution == wheel.distribution && is_own(row.variant)) own.push_back(row.variant);
  auto choice = choose_wheel(at, wheel, likely_driver(at), own);
  if (!choice && !own.empty() && !compiles) choice = choose_wheel(at, wheel, likely_driver(at));
  // The same project under another name, with code for other GPUs.
  for (const data::SiblingRow& row : data::siblings()) {
    if (choice || row.distribution != wheel.distribution) continue;
    WheelName sibling;
    sibling.distribution = row.sibling;
    choice = choose_wheel(at, sibling, likely_driver(at));
    if (choice) wheel = sibling;
  }
  const data::GpuRow* gpu = gpu_of(at);
  if (!choice) {
    if (const InstallerRow* container = find_installer(wheel.distribution, "container");
        container != nullptr && at.gpu.cc->major >= 10) {
      fixes.push_back(fix_of("run-container", {{"title", std::string(container->title)},
                                               {"caveat", std::string(container->caveat)}}));
      fixes.back().steps = commands_of(container->command);
    }
    if (gpu != nullptr && gpu->tegra)
      fixes.push_back(wheel.distribution == "torch"
                          ? fix_of("install-jetson-wheel")
                          : fix_of("install-jetson-wheel/other", {{"what", at.package.name.shown()}}));
    return false;
  }
  const std::string served = image_that_serves(*choice->row, *at.gpu.cc);
  const bool compiled = serves(*choice->row, *at.gpu.cc) == image::Choice::jit;
  if (compiled && at.cause == core::Cause::jit_tax) return false;  // the same compiling at each start
  FixDraft fix = install(at, *choice, wheel);
  fix.title += what_serves(at, *choice);
  const std::string_view which = choice->row->variant;
  fix.why = fmt::format("{} {}, {}", which.empty() ? "it has" : fmt::format("the build for {} has", which),
                        served, compiled ? "which the driver compiles for it" : "which runs on it");
  fixes.push_back(std::move(fix));
  return choice->row->basis != Basis::declared && !compiled && is_plain(wheel.version);
}

std::optional<bool> torch_serves(const Facts& at) {
  if (!at.gpu.cc) return std::nullopt;
  const WheelName torch = leader_of(at, "torch");
  if (torch.version.empty()) return std::nullopt;
  const WheelRow* row = row_of(at, torch);
  if (row == nullptr) return std::nullopt;
  return serves(*row, *at.gpu.cc) != image::Choice::none;
}

bool add_wheel_for_driver(const Facts& at, FixDrafts& fixes) {
  if (at.package.from_source || !at.driver.cuda.known() || at.package.manager == "dpkg" ||
      at.package.manager == "rpm")
    return false;
  WheelName wheel = wanted(at, {});
  for (const data::CudaFollowerRow& row : data::cuda_followers())
    if (row.distribution == wheel.distribution) wheel = leader_of(at, row.leader);
  if (wheel.distribution.empty()) return false;
  const auto choice = choose_wheel_for_driver(at, wheel);
  if (!choice || choice->row->variant.empty()) return false;
  FixDraft fix = install(at, *choice, wheel);
  fix.title += ", which this driver runs";
  fix.why = fmt::format("the driver is for CUDA {}, and runs what is built for {}.x", name(at.driver.cuda),
                        cuda_of(choice->row->variant).major);
  if (!at.gpu.cc) add_clause(fix.caveat, gpus_of(*choice->row));
  fixes.push_back(std::move(fix));
  return true;
}

void add_serving_fixes(const Facts& at, const WheelRow* there, AdviceDraft& advice) {
  const WheelName wheel = wheel_of(at);
  const std::string other =
      data::wheel_name(at.call.extension).distribution == wheel.distribution ? "" : at.call.extension;
  const InstallerRow* installer = find_installer(wheel.distribution, manager_of(at));
  const std::string title(installer != nullptr ? installer->title : std::string_view(wheel.distribution));
  const std::string image = there != nullptr ? image_that_serves(*there, *at.gpu.cc) : "";
  const std::string gpu = name(*at.gpu.cc);
  const std::string doubt = there != nullptr ? doubt_of(*there, wheel.version) : "";
  advice.fixes.push_back(fix_of(
      there != nullptr ? "update-other-package" : "update-other-package/works",
      {{"gpu", gpu},
       // The command itself is of Linux; in WSL, it reads what Windows has.
       {"folder", at.process.windows
                      ? "FOLDER_OR_WHEEL"
                      : R"x("$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')")x"},
       {"whose", other.empty() ? "the scan names the package of that file"
                               : fmt::format("{} is the package that called", other)},
       {"wsl", at.process.windows ? "; kshim scan runs in WSL, where C: is /mnt/c" : ""},
       {"title", std::string(title)},
       {"version", wheel.version},
       {"image", image},
       {"variant",
        there == nullptr || there->variant.empty() ? "" : fmt::format(" (the build for {})", there->variant)},
       {"declared", doubt.empty() ? "" : fmt::format("; of {}: {}", title, doubt)}}));
  FixDraft& fix = advice.fixes.back();
  if (!at.process.windows) fix.steps.front().needs |= say::need::system;
  if (!other.empty() && data::comes_from_index(other))
    fix.steps.push_back(say::command_of(
        at.package.manager == "conda" ? "conda update {package}" : "pip install --upgrade {package}",
        {{"package", core::shell_quote(other)}}));
  const bool extensions = wheel.distribution == "torch" || wheel.distribution == "pytorch-gpu";
  if (extensions && at.package.manager != "conda") add_extension_rebuild(at, advice.fixes);
  advice.dead_ends.push_back(
      {fmt::format("installing {} again, or for another CUDA", title),
       there != nullptr ? fmt::format("its build has {} already, by a table of such packages", image)
                        : "it works on this GPU, by the log"});
}

void add_wheel_remarks(const Facts& at, std::vector<std::string>& remarks) {
  if (!at.gpu.cc || at.package.from_source) return;
  const WheelName wheel = wheel_of(at);
  const char* manager = manager_of(at);
  const InstallerRow* installer = find_installer(wheel.distribution, manager);
  const std::string platform = platform_of(at);
  const std::string_view known = data::newest_known(wheel.distribution, platform);
  if (is_plain(wheel.version) && !known.empty() && compare_releases(wheel.version, known) > 0 &&
      !is_within(wheel.version, known, known)) {
    remarks.push_back(
        fmt::format("{} {} is newer than this kshim knows ({}, with {} as the newest): what its builds have "
                    "is not known.",
                    wheel.distribution, wheel.version, data::knowledge_date(), known));
  }
  if (installer == nullptr || !data::knows_wheels_of(wheel.distribution, platform) ||
      serving_already(at) != nullptr || choose_wheel(at, wheel, at.driver.cuda))
    return;
  std::string_view oldest;  // what came before was not looked at
  for (const WheelRow& row : wheels())
    if (row.distribution == wheel.distribution && row.platform == platform &&
        (oldest.empty() || compare_releases(row.first, oldest) < 0))
      oldest = row.first;
  remarks.push_back(fmt::format(
      "No build of {} that {} installs is known to have code for compute capability {} (releases before {} "
      "were not looked at).",
      installer->title, manager, name(*at.gpu.cc), oldest));
}

std::vector<std::string> useless_variants(const Facts& at) {
  std::vector<std::string> out;
  const WheelName wheel = wheel_of(at);
  if (!at.gpu.cc || wheel.distribution.empty() || !is_plain(wheel.version)) return out;
  const std::string platform = platform_of(at);
  const WheelRow* there = row_of(at, wheel);
  for (const WheelRow& row : wheels()) {
    if (&row != there && row.distribution == wheel.distribution && row.platform == platform &&
        !row.variant.empty() && is_within(wheel.version, row.first, row.last) &&
        basis_of(row, wheel.version) != Basis::interpolated && serves(row, *at.gpu.cc) == image::Choice::none)
      out.emplace_back(row.variant);
  }
  return out;
}

}  // namespace kshim::advise

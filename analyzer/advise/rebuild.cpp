// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::advise {
using core::shell_quote;
using data::find_build;
using data::LibrarySupportRow;
using data::ToolkitRow;
using diagnose::Facts;
using diagnose::Origin;
using say::Build;
using say::BuildPlan;

namespace {

using image::ComputeCapability;
using image::Version;

struct Chosen {
  BuildPlan plan;
  bool other_toolkit = false;  ///< not the one that built the file
};

// Whether anybody outside its maker can build the package: a row says how, or it was built against PyTorch
// from a source that pip fetches. Of what somebody installed as a file and no row knows, that is not known.
bool is_source_known(const Facts& at) {
  const bool of_row = find_build(at.package.name.normal(), at.file.path) != nullptr ||
                      data::is_without_source(at.package.name.normal());
  const bool as_file = at.package.manager == "pip" && at.file.origin == Origin::installed &&
                       !at.file.path.empty() && at.package.source.empty();
  return of_row || !as_file || !at.package.build_system.empty();
}

std::string output_name(const Facts& at) {
  if (at.file.path.empty()) return at.file.bare ? "OUTPUT.fatbin" : "OUTPUT";
  std::string_view name = core::basename_of(at.file.path);
  if (!at.file.bare) return shell_quote(name);
  name = name.substr(0, name.rfind('.'));
  return shell_quote(fmt::format("{}.fatbin", name));
}

// The release in a project's repository: of a version that is nothing but numbers, and not a text from
// elsewhere.
std::string release_tag(const Facts& at) {
  const std::string version = at.package.version.substr(0, at.package.version.find('+'));
  if (version.empty() || version.find_first_not_of("0123456789.") != std::string::npos) return {};
  return "@v" + version;
}

// What a build of one's own has to serve: the GPUs of this machine. What is built to be passed on keeps its
// list.
std::vector<image::Candidate> list_to_keep(const Facts& at) {
  if (!comes_built(at)) return at.images.have;
  std::vector<image::Candidate> out;
  for (const ComputeCapability cc : at.gpu.others)
    out.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  return out;
}

/// But for its recipe.
Build build_for(const Facts& at, const Chosen& chosen) {
  Build out{nullptr, chosen.plan};
  // Where NVIDIA's packages and runfiles install a toolkit.
  if (chosen.other_toolkit)
    out.toolkit = fmt::format("/usr/local/cuda-{}", name(chosen.plan.toolkit->version));
  if (at.file.relocatable) out.mode = " -rdc=true";
  out.output = output_name(at);
  if (!at.file.build_folder.empty()) out.folder = shell_quote(at.file.build_folder);
  // In a checkout, where nobody knows whether an index has the source.
  if (!at.package.name.empty() && comes_built(at) && is_source_known(at) &&
      (!at.file.path.empty() || data::comes_from_index(at.package.name.shown())))
    out.package = shell_quote(at.package.name.shown());
  out.tag = release_tag(at);
  out.variable = at.package.arch_variable;
  if (!at.process.program.empty()) out.program = at.process.program;
  return out;
}

// The build systems that may have made the file, likeliest first.
std::vector<std::string_view> recipes_for(const Facts& at, const Chosen& chosen) {
  const std::string_view nvcc = at.file.bare                        ? "nvcc_fatbin"
                                : diagnose::is_object_file(at.file) ? "nvcc_object"
                                : at.file.shared_library            ? "nvcc_library"
                                                                    : "nvcc";
  const std::string_view cmake = chosen.other_toolkit ? "cmake_toolkit" : "cmake";
  const std::string_view torch = chosen.other_toolkit ? "torch_toolkit" : "torch";
  if (at.package.build_system == "spack") return {"spack"};  // whatever the package's own build is
  const data::BuildRow* own = find_build(at.package.name.normal(), at.file.path);
  if (own != nullptr) {
    if (own->recipe == "torch") return {torch};
    if (own->recipe == "flash_attn" && at.gpu.cc == ComputeCapability{8, 7}) return {"flash_attn_nvcc"};
    return {own->recipe};
  }
  if (at.package.build_system == "cargo") return {"cargo"};
  if (at.package.arch_variable.starts_with("Kokkos_ARCH_")) return {"kokkos"};
  if (!at.package.arch_variable.empty() && !at.package.arch_flags &&
      at.package.arch_variable != "CMAKE_CUDA_ARCHITECTURES" &&
      at.package.arch_variable != "TORCH_CUDA_ARCH_LIST")
    return {at.package.arch_dots ? "cmake_own_dots" : "cmake_own"};
  if (at.file.links_torch) return {torch};
  if (at.package.build_system == "make") return {"make", "make_sms"};
  if (at.package.build_system == "meson") return {"meson"};
  if (at.package.build_system == "bazel") return {"bazel"};
  if (at.package.build_system == "cmake") return {cmake};
  if (data::is_without_source(at.package.name.normal())) return {};
  switch (at.file.origin) {
    case Origin::python_extension:
    case Origin::installed:
      return {"extension", "extension_cmake"};
    case Origin::cmake:
      return {cmake};
    default:
      if (comes_built(at) && data::comes_by_pip(at.package.name.shown()))
        return {"extension", "extension_cmake"};
      if (at.file.bare) return {nvcc};
      // What has a name is a project, whose build calls nvcc.
      if (at.file.path.empty() && (!at.package.project.empty() || !at.package.software.empty()))
        return {cmake, "make", nvcc};
      return {nvcc, cmake, "make"};
  }
}

std::string caveat_for(const Facts& at, const Chosen& chosen) {
  std::vector<std::string> parts;
  if (comes_built(at)) {
    parts.emplace_back(at.gpu.others.empty()
                           ? "it builds the package from its source, for this GPU alone"
                           : "it builds the package from its source, for this machine's GPUs alone");
    if (const ToolkitRow* last = last_before_dropped(at))
      parts.push_back(
          fmt::format("today's source may ask for a newer CUDA than {}: then take an older release of it",
                      name(last->version)));
  } else if (at.file.origin == Origin::system) {
    parts.emplace_back(
        "it builds the package from its source; a release built for this GPU, if there is one, saves that");
  }
  if (at.file.bare && !at.file.path.ends_with(".fatbin")) {
    parts.emplace_back("load the fatbin in its place: a cubin or a PTX file holds one architecture only");
  }
  if (!chosen.plan.dropped.empty()) {
    std::vector<std::string> names;
    for (const image::Candidate& image : chosen.plan.dropped) names.push_back(name(image));
    parts.push_back(fmt::format("CUDA {} cannot build {}: ship a second build for those GPUs",
                                name(chosen.plan.toolkit->version), core::enumerate(names)));
  }
  if (at.cause == core::Cause::arch_specific_image) {
    parts.emplace_back("source that uses instructions of one architecture only does not compile for another");
  }
  if (chosen.other_toolkit && !driver_to_keep(at).empty()) parts.push_back(driver_to_keep(at));
  return core::join(parts, "; ");
}

std::string added_name(const BuildPlan& plan, const say::PlannedArch& row) {
  return name(plan.by_ptx && row.ptx ? image::ImageKind::ptx : image::ImageKind::cubin, row.arch);
}

FixDraft rebuild_fix(const Facts& at, const Chosen& chosen) {
  const ToolkitRow& toolkit = *chosen.plan.toolkit;
  std::vector<std::string> names;
  for (const say::PlannedArch& row : chosen.plan.archs)
    if (row.added) names.push_back(added_name(chosen.plan, row));
  const std::string added = core::enumerate(names);
  FixDraft fix;
  fix.id = "rebuild";
  if (chosen.other_toolkit || at.images.toolkit.known()) fix.cuda = toolkit.version;
  fix.arguments = {{"architecture", core::join(names, " ")},
                   {"cuda", chosen.other_toolkit ? name(toolkit.version) : ""}};
  fix.kind = chosen.other_toolkit && at.images.toolkit.known() && toolkit.version < at.images.toolkit
                 ? core::FixKind::downgrade
                 : core::FixKind::rebuild;
  fix.caveat = caveat_for(at, chosen);
  if (!chosen.other_toolkit) {
    const bool there = std::ranges::all_of(names, [&](const std::string& each) {
      return std::ranges::any_of(at.images.have,
                                 [&](const image::Candidate& image) { return each == name(image); });
    });
    // Other modules of the file have it.
    fix.title = comes_built(at)
                    ? fmt::format("Build {} from its source, for {}",
                                  at.package.name.empty() ? "it" : called(at, at.package.name.shown()), added)
                : there ? fmt::format("Rebuild all of its sources with {}", added)
                        : fmt::format("Rebuild with {} added", added);
    fix.why =
        at.images.toolkit.known()
            ? fmt::format(
                  fmt::runtime(at.file.path.empty() ? "CUDA {} can do it ({})"
                                                    : "CUDA {}, which built the file ({}), can do it"),
                  name(at.images.toolkit), at.images.toolkit_how)
        : comes_built(at)
            ? fmt::format("the nvcc of {} can target {}; which of them {} builds with, its own documents say",
                          toolkit_range(chosen.plan), added,
                          at.package.name.empty() ? "the package" : called(at, at.package.name.shown()))
            : fmt::format("{} can do it; which one built the file is not known", toolkit_range(chosen.plan));
  } else {
    const ToolkitRow* last = data::last_toolkit_for({*at.gpu.cc, image::Suffix::none});
    const bool dropped = last != nullptr && at.images.toolkit > last->version;
    fix.title = fmt::format("Rebuild with CUDA {}, which can target {}", name(toolkit.version), added);
    fix.why =
        !data::can_ever_run(at.gpu.cc, at.images.toolkit)
            ? fmt::format(
                  "what CUDA {} ({}) builds does not run on a Jetson with this GPU: its JetPack ends before",
                  name(at.images.toolkit), at.images.toolkit_how)
        : dropped
            ? fmt::format("CUDA {} ({}) cannot build for {}: {} is the last that can",
                          name(at.images.toolkit), at.images.toolkit_how, sm_name(*at.gpu.cc),
                          name(last->version))
            : fmt::format("CUDA {} ({}) does not know {} yet: {} can build for it", name(at.images.toolkit),
                          at.images.toolkit_how, sm_name(*at.gpu.cc), toolkit_range(*at.gpu.cc));
  }
  if (!at.package.builds && !comes_built(at)) fix.title = "If you build it yourself: " + fix.title;
  if (!is_source_known(at)) {
    fix.title = "If its source is public: " + fix.title;
    fix.caveat = "whether its source is public is not known" + (fix.caveat.empty() ? "" : "; " + fix.caveat);
  }
  if (chosen.plan.by_ptx) add_clause(fix.caveat, "PTX is compiled at the first load, which takes time");
  return fix;
}

// A fix for each build system: the commands of one fix are run one after the other, never instead of each
// other.
void add_rebuild(const Facts& at, const Chosen& chosen, FixDrafts& fixes) {
  Build build = build_for(at, chosen);
  const std::string version = at.package.version.empty() ? "" : " " + at.package.version;
  const std::string project = at.package.name.empty() ? "" : at.package.name.shown() + version;
  bool first = true;
  for (const std::string_view each : recipes_for(at, chosen)) {
    const data::RecipeRow& row = data::find_recipe(each);
    if (arch_list(chosen.plan, row.list).empty()) continue;  // it has no word for this GPU
    // pip would overwrite files that conda's database lists.
    if (at.package.manager == "conda" && row.pip != data::Pip::none) continue;
    build.recipe = &row;
    RecipeCommand recipe = command_for(build, at.package.source, project);
    FixDraft fix = rebuild_fix(at, chosen);
    const bool explains_itself = row.id == "torch" || row.id == "torch_toolkit";
    if (!first) {
      fix.title = fmt::format("The same with {}", row.name);
      fix.caveat = recipe.caveat;
    } else if (!explains_itself || build.package == Build{}.package) {
      // What the command leaves to the reader; whether a project follows the list is for the project to say.
      add_clause(fix.caveat, recipe.caveat);
    }
    fix.steps.push_back(std::move(recipe.command));
    fix.system = row.system;
    fixes.push_back(std::move(fix));
    first = false;
  }
}

// Code made in memory: there is no file to build again, but a compiler in the process (NVRTC, or what is
// built on it) that was told which GPU to compile for.
void add_compiler_fix(const Facts& at, FixDrafts& fixes) {
  const ToolkitRow* at_hand = data::toolkit_at_most(at.images.toolkit);
  const ToolkitRow* other = recommend_toolkit(*at.gpu.cc, std::nullopt, at.driver.cuda, {});
  std::optional<BuildPlan> plan;
  if (at_hand != nullptr) plan = plan_build({}, *at.gpu.cc, *at_hand, at.driver.cuda);
  const bool here = plan.has_value();
  if (!plan && other != nullptr) plan = plan_build({}, *at.gpu.cc, *other, at.driver.cuda);
  if (!plan) return;
  const auto added = std::ranges::find(plan->archs, true, &say::PlannedArch::added);
  if (added == plan->archs.end()) return;
  // Which compiler made it is not known as a rule: where the newest ones have dropped the GPU, that is said.
  const ToolkitRow* last = data::last_toolkit_for({*at.gpu.cc, image::Suffix::none});
  const bool dropped = last != nullptr && last != &data::toolkits().back();
  fixes.push_back(
      fix_of("compile-at-run-time",
             {{"target", added_name(*plan, *added)},
              {"with", at_hand == nullptr
                           ? (dropped ? fmt::format(", with CUDA {} or older", name(last->version)) : "")
                       : here ? ""
                              : fmt::format(", with CUDA {}", name(plan->toolkit->version))}}));
  if (!here && at_hand != nullptr) fixes.back().kind = core::FixKind::downgrade;
}

// What nobody says of a toolkit: that of the newest published builds.
std::optional<Version> near_published(const Facts& at) {
  if (!comes_built(at)) return std::nullopt;
  const std::string distribution = wheel_of(at).distribution;
  Version newest;
  for (const data::WheelRow& row : data::wheels()) {
    if (row.distribution == distribution && row.platform == data::kLinux)
      newest = std::max(newest, cuda_of(row.variant));
  }
  return newest.known() ? std::optional(newest) : std::nullopt;
}

// The authors leave this GPU out on purpose: their source has nothing for it.
const LibrarySupportRow* left_out_by(const Facts& at) {
  const data::BuildRow* own = find_build(at.package.name.normal(), at.file.path);
  if (own == nullptr || own->distribution.empty()) return nullptr;
  const LibrarySupportRow* row = data::find_library_support(own->distribution, at.package.version);
  return row != nullptr && *at.gpu.cc < row->min ? row : nullptr;
}

FixDraft do_without(const LibrarySupportRow& row, image::ComputeCapability device) {
  const LibrarySupportRow* older = data::last_library_for(row.library, device);
  const std::string why =
      older == nullptr
          ? fmt::format("it is written for compute capability {} and newer: no build of it serves this GPU",
                        name(row.min))
          : fmt::format(
                "{} and newer are written for compute capability {} and newer; {} was the last that "
                "serves this GPU, and its functions have other names",
                row.first, name(row.min), older->last);
  const data::SoftwareRow* own = data::first_row(
      data::software(), [&](const data::SoftwareRow& each) { return each.package == row.library; });
  const bool is_program = own != nullptr && own->use == "program";
  return fix_of(is_program ? "do-without-library/program" : "do-without-library",
                {{"library", std::string(row.library)}, {"why", why}, {"note", std::string(row.note)}});
}

}  // namespace

void add_rebuild_for_driver(const Facts& at, FixDrafts& fixes) {
  const auto have = list_to_keep(at);
  const ToolkitRow* other = recommend_toolkit(*at.gpu.cc, at.driver.cuda, at.driver.cuda, have);
  if (other == nullptr || other->version.major > at.driver.cuda.major) return;
  const auto plan = plan_build(have, *at.gpu.cc, *other, at.driver.cuda, at.gpu.also);
  if (!plan) return;
  const std::size_t first = fixes.size();
  add_rebuild(at, {*plan, true}, fixes);
  if (fixes.size() == first) return;
  fixes[first].title =
      fmt::format("Rebuild with CUDA {}, whose cubins this driver reads", name(other->version));
  fixes[first].why = fmt::format("it is for CUDA {}, and CUDA {} built the file", name(at.driver.cuda),
                                 name(diagnose::newest_cubin(at.images)));
}

void add_extension_rebuild(const Facts& at, FixDrafts& fixes) {
  Facts extension = at;
  extension.file.origin = Origin::python_extension;
  extension.package.name = {};
  extension.package.version.clear();
  const ToolkitRow* at_hand = data::toolkit_at_most(at.images.toolkit);
  const bool here = at_hand == nullptr || builds_for(*at_hand, {*at.gpu.cc, image::Suffix::none});
  const ToolkitRow* toolkit =
      here && at_hand != nullptr ? at_hand : recommend_toolkit(*at.gpu.cc, std::nullopt, at.driver.cuda, {});
  const auto plan = toolkit != nullptr ? plan_build({}, *at.gpu.cc, *toolkit, at.driver.cuda) : std::nullopt;
  if (!plan) return;
  Build build = build_for(extension, {*plan, !here});
  build.recipe = &data::find_recipe(here ? "torch" : "torch_toolkit");
  if (at.call.extension.empty())
    build.package = "EXTENSION";
  else if (data::comes_from_index(at.call.extension))
    build.package = shell_quote(at.call.extension);
  fixes.push_back(fix_of("rebuild-extension", {{"range", toolkit_range(*plan)}}));
  fixes.back().steps.push_back(command_of(std::move(build)));
}

// Code of a static library of NVIDIA's comes as NVIDIA built it.
FixDraft other_library_to_link(const Facts& at) {
  Facts library;
  library.gpu.cc = at.gpu.cc;
  library.package.software = at.file.linked_library;
  const std::string range = release_range(library);
  return fix_of("link-other-library", {{"file", std::string(core::basename_of(at.file.path))},
                                       {"library", fmt::format("lib{}", at.file.linked_library)},
                                       {"gpu", sm_name(*at.gpu.cc)},
                                       {"releases", range.empty() ? "" : fmt::format(" ({})", range)}});
}

void add_rebuild_fixes(const Facts& at, FixDrafts& fixes) {
  if (!at.gpu.cc) return;
  if (at.file.loose) return add_compiler_fix(at, fixes);
  if (at.package.released) return add_other_build_fix(at, fixes);
  // Of another language, pip installs nothing, and what it would install is not what its user builds.
  if (is_shown("not-python", at)) {
    if (add_other_ways(at, fixes) && !fixes.empty()) return;
    if (data::find_installer(wheel_of(at).distribution, "pip") != nullptr)
      return add_other_build_fix(at, fixes);
  }
  if (is_vendors(at)) return add_release_fix(at, fixes);
  if (!release_range(at).empty()) return add_listed_release_fix(at, fixes);
  add_extension_fix(at, fixes);
  if (const LibrarySupportRow* row = left_out_by(at)) return fixes.push_back(do_without(*row, *at.gpu.cc));
  // Hours of building are no answer where a build exists.
  const bool magma = core::basename_of(at.file.path).starts_with("libtorch_cuda_linalg.");
  const std::size_t before = fixes.size();
  const bool wheel = add_wheel_fix(at, fixes) && comes_built(at);
  // It comes to PyTorch's build as a finished library, made for a list of its own.
  if (magma) fixes.push_back(fix_of("prefer-cusolver"));
  if (wheel || magma) return;
  // What its makers state ends it where no older release serves the GPU: a build of one's own fails, too.
  if (lacks_code(at.cause) && at.package.minimum.major != 0 && *at.gpu.cc < at.package.minimum &&
      fixes.size() == before)
    return fixes.push_back(fix_of("use-newer-gpu/minimum", {{"what", called(at, at.package.name.shown())},
                                                            {"minimum", name(at.package.minimum)},
                                                            {"gpu", name(*at.gpu.cc)}}));
  if (add_other_ways(at, fixes)) return;
  // A wheel that was named may be the user's own.
  if (add_sibling_fix(at, fixes) && comes_built(at)) return;
  if (comes_built(at) && at.package.manager != "conda" && add_source_build(at, fixes))
    return add_package_fix(at, fixes);
  // Nor does a project build for Windows what it never published for it.
  const data::BuildRow* own = find_build(at.package.name.normal(), at.file.path);
  const bool ended =
      own != nullptr && own->recipe == "torch_itself" && platform_of(at).starts_with("windows");
  if (comes_built(at) && (ended || source_asks_beyond(at).known())) return add_package_fix(at, fixes);
  // What links against PyTorch is an extension, whose source is public as a rule.
  if ((!at.package.builds && !comes_built(at)) || (!is_source_known(at) && !at.file.links_torch))
    add_other_build_fix(at, fixes);
  if (!at.file.linked_library.empty()) {
    fixes.push_back(other_library_to_link(at));
    return add_package_fix(at, fixes);
  }
  const auto have = list_to_keep(at);
  const ToolkitRow* at_hand = data::toolkit_at_most(at.images.toolkit);
  const ToolkitRow* other = recommend_toolkit(
      *at.gpu.cc, at_hand ? std::optional(at_hand->version) : near_published(at), at.driver.cuda, have);
  std::optional<BuildPlan> here;
  if (at_hand != nullptr && data::can_ever_run(at.gpu.cc, at_hand->version))
    here = plan_build(have, *at.gpu.cc, *at_hand, at.driver.cuda, at.gpu.also);
  if (here && !here->by_ptx) {
    add_rebuild(at, {*here, false}, fixes);
  } else {
    if (other != nullptr) {
      if (auto plan = plan_build(have, *at.gpu.cc, *other, at.driver.cuda, at.gpu.also)) {
        add_rebuild(at, {*plan, at_hand != nullptr}, fixes);
      }
    }
    if (here && !comes_built(at)) add_rebuild(at, {*here, false}, fixes);
  }
  add_package_fix(at, fixes);
}

}  // namespace kshim::advise

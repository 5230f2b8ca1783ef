// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/compilers.h"
#include "analyzer/owner/distributions.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/decompress.h"

namespace kshim::advise {
namespace {

using image::Version;

std::string driver_update(const Facts& at, std::string_view of_linux) {
  return "Update the driver" + driver_goal(at, of_linux);
}

// The rejected PTX version: the one in the message, otherwise the oldest PTX image.
Version refused_isa(const Facts& at) {
  if (at.images.ptx.known()) return at.images.ptx;
  Version isa;
  for (const image::Candidate& image : at.images.have) {
    if (image.kind == image::ImageKind::ptx && (!isa.known() || image.isa < isa) && image.isa.known())
      isa = image.isa;
  }
  return isa;
}

// Whether the toolkit that is known made the PTX: beside a finished program, a log names that of its user,
// unless it is newer than the driver and so explains the failure.
bool made_ptx(const Facts& at) {
  const bool finished = at.package.released || comes_built(at);
  return at.images.toolkit.known() &&
         (!finished || at.file.origin == Origin::memory || !at.package.variant.empty() ||
          toolkit_that_driver_reads(at) != nullptr);
}

// The minimum CUDA version of the driver: from the PTX version, otherwise from the toolkit that made the PTX,
// otherwise the next release after its own.
Version needed_cuda(const Facts& at, Version isa) {
  if (isa.known()) return image::cuda_of_ptx_isa(isa);
  // Bytecode of Tile IR is numbered as the CUDA that reads it.
  for (const image::Candidate& image : at.images.have) {
    if (image.kind == image::ImageKind::tileir) return image.isa;
  }
  if (!at.images.have.empty()) return {};
  const ToolkitRow* reads = toolkit_that_driver_reads(at);
  if (made_ptx(at) && (reads == nullptr || reads->isa < image::ptx_isa_of_cuda(at.images.toolkit)))
    return at.images.toolkit;
  if (reads == nullptr) return {};
  for (const ToolkitRow& row : toolkits()) {
    if (reads->isa < row.isa) return row.version;
  }
  return {};
}

// A driver update helps only as far as the GPU is still supported.
void add_driver_fix(const Facts& at, AdviceDraft& advice) {
  const Version isa = refused_isa(at);
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const bool exact = isa.known() || made_ptx(at);
  Version needed = needed_cuda(at, isa);
  if (needed.known() && last.known() && needed > last) {
    advice.dead_ends.push_back(no_driver_update(
        fmt::format("R{} is the last driver branch for {} GPUs and reads PTX for CUDA {} at most; "
                    "this PTX needs CUDA {}",
                    gpu->last_branch, gpu->family, name(last), name(needed))));
    return;
  }
  // No JetPack brings a newer one to a Jetson whose own have ended.
  if (gpu != nullptr && gpu->tegra && needed.known() && !can_ever_run(at.gpu.cc, needed)) return;
  // Nor one that does not know the GPU.
  if (gpu != nullptr && needed.known() && needed < gpu->first_toolkit) needed = gpu->first_toolkit;
  FixDraft fix{{FixKind::upgrade_driver,
                "Update the driver",
                {},
                "a newer driver reads newer PTX",
                "",
                "update-driver"}};
  const ToolkitRow* row = needed.known() ? toolkit_at_most(needed) : nullptr;
  if (row != nullptr && !row->driver.empty()) {
    const ToolkitRow* reads = toolkit_that_driver_reads(at);
    fix.title = driver_update(at, row->driver);
    fix.why = exact || reads == nullptr
                  ? fmt::format("drivers for CUDA {} and newer read PTX {}", name(needed),
                                name(isa.known() ? isa : row->isa))
                  : fmt::format(
                        "it is the first driver that reads PTX newer than {}; the log does not state the "
                        "PTX version",
                        name(reads->isa));
  }
  if (gpu != nullptr && gpu->tegra) fix.title = "Update JetPack, which brings the driver";
  if (last.known())
    fix.caveat = fmt::format("stay within branch R{}: it is the last one for this GPU", gpu->last_branch);
  advice.fixes.push_back(std::move(fix));
}

// PTX without a file was made at run time, by NVRTC or what is built on it: its version is that of this
// compiler.
void add_older_compiler_fix(const Facts& at, FixDrafts& fixes) {
  const ToolkitRow* row = toolkit_that_driver_reads(at);
  if (row == nullptr || (at.gpu.cc && !plan_build({}, *at.gpu.cc, *row, row->version))) return;
  fixes.push_back(fix_of("compile-with-older-cuda", {{"cuda", name(row->version)}, {"isa", name(row->isa)}}));
}

}  // namespace

std::string driver_text(const Facts& at, std::string_view of_linux) {
  const auto& rows = knowledge().windows_drivers;
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const WindowsDriverRow& each) { return each.of_linux == of_linux; });
  if (!at.process.windows) return std::string(of_linux);
  // Both systems count branches alike, and releases each by itself.
  return std::string(row != rows.end() ? row->of_windows : of_linux.substr(0, of_linux.find('.')));
}

bool has_driver(const Facts& at, std::string_view of_linux) {
  // A container may have an older library than the kernel module: both have to be new enough.
  const ToolkitRow* row = at.driver.cuda.known() ? toolkit_at_most(at.driver.cuda) : nullptr;
  const bool by_library = row == nullptr || compare_releases(row->driver, of_linux) >= 0;
  const bool by_module =
      at.driver.module.empty() || compare_releases(at.driver.module, driver_text(at, of_linux)) >= 0;
  return (row != nullptr || !at.driver.module.empty()) && by_library && by_module;
}

std::string driver_goal(const Facts& at, std::string_view of_linux) {
  if (!has_driver(at, of_linux)) return fmt::format(" to {} or newer", driver_text(at, of_linux));
  return at.driver.module.empty() ? fmt::format(" to one for a CUDA newer than {}", name(at.driver.cuda))
                                  : fmt::format(" to one newer than {}", at.driver.module);
}

const ToolkitRow* toolkit_that_driver_reads(const Facts& at) {
  if (at.driver.cuda.known()) return toolkit_at_most(at.driver.cuda);
  return at.driver.reads.known() ? toolkit_of_isa(at.driver.reads) : nullptr;
}

void add_newer_ptx_fixes(const Facts& at, AdviceDraft& advice) {
  const bool at_run_time = at.file.origin == Origin::memory;
  const bool closed = at.file.origin == Origin::installed || at.package.released;
  // Without a list of images, the log may be about a binary that the reader cannot rebuild.
  const bool driver_first = closed || at.images.have.empty();
  const bool compiled_here = at_run_time && !at.file.loose;
  bool asked = false;  // once
  if (compiled_here) {
    // A program that compiles for the present GPU gains nothing from a build for that GPU.
    if (!add_other_ways(at, advice.fixes)) {
      // A package that came built brings its compiler along.
      asked = comes_built(at);
      if (asked)
        add_driver_fix(at, advice);
      else
        add_older_compiler_fix(at, advice.fixes);
      add_wheel_fix(at, advice.fixes);
    }
  } else {
    if (at_run_time) add_older_compiler_fix(at, advice.fixes);
    if (driver_first) add_driver_fix(at, advice);
    const ToolkitRow* row = toolkit_that_driver_reads(at);
    if (!at_run_time && !closed && (!at.gpu.cc || at.images.have.empty()))
      advice.fixes.push_back(row == nullptr ? fix_of("build-for-driver")
                                            : fix_of("build-with-older-cuda", {{"cuda", name(row->version)},
                                                                               {"isa", name(row->isa)}}));
    // Of what came built, an older build is what its user can take.
    if (closed && !at_run_time && row != nullptr)
      advice.fixes.push_back(
          fix_of("use-older-build/cuda", {{"cuda", name(row->version)}, {"isa", name(row->isa)}}));
    add_rebuild_fixes(at, advice.fixes);
  }
  if (!asked && (compiled_here || !driver_first)) add_driver_fix(at, advice);
}

// Within a CUDA major version, an older driver reads newer cubins.
void add_newer_driver_fixes(const Facts& at, AdviceDraft& advice) {
  const Version cubin = newest_cubin(at.images);
  const bool newer_cubin = cubin.major > at.driver.cuda.major;
  const Version needed = newer_cubin ? Version{cubin.major, 0} : image::kFirstZstdDriver;
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const ToolkitRow* row = toolkit_at_most(needed);
  if (last.known() && needed > last) {
    advice.dead_ends.push_back(no_driver_update(
        fmt::format("R{} is the last driver branch for {} GPUs", gpu->last_branch, gpu->family)));
  } else if (row != nullptr) {
    advice.fixes.push_back(
        {FixKind::upgrade_driver,
         row->driver.empty() ? fmt::format("Update the driver to one for CUDA {}", name(needed))
                             : driver_update(at, row->driver),
         {},
         newer_cubin ? fmt::format("drivers for CUDA {} and newer read the cubins of CUDA {}.x", name(needed),
                                   needed.major)
                     : fmt::format("drivers for CUDA {} and newer read compressed images", name(needed)),
         "",
         "update-driver"});
  }
  if (newer_cubin && at.gpu.cc) add_rebuild_for_driver(at, advice.fixes);
}

std::string_view oldest_driver(const Facts& at, unsigned major) {
  const ToolkitRow* row = toolkit_at_most({static_cast<std::uint16_t>(major), 0});
  if (row == nullptr || row->version.major != major) return {};
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  const ToolkitRow* first = gpu != nullptr ? find_toolkit(gpu->first_toolkit) : nullptr;
  const bool later = first != nullptr && first->version.major == major && !first->driver.empty();
  return later ? first->driver : row->minor_driver;
}

namespace {

// The driver that a newer runtime asks for at least, " to 525.60.13 or newer": since CUDA 11 one driver runs
// all releases of its major version.
std::string driver_beyond(const Facts& at) {
  const bool by_major = at.driver.cuda.major >= 11;
  for (const ToolkitRow& row : toolkits()) {
    if (by_major ? row.version.major <= at.driver.cuda.major : !(at.driver.cuda < row.version)) continue;
    const std::string_view driver = by_major ? oldest_driver(at, row.version.major) : row.driver;
    return driver.empty() ? std::string() : driver_goal(at, driver);
  }
  return {};
}

}  // namespace

// 35: within a CUDA major version any driver of that version will do; an image of a container names the minor
// version, too.
void add_runtime_fixes(const Facts& at, AdviceDraft& advice) {
  if (at.call.code != kInsufficientDriver && !at.driver.asked_by_container) return;
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  if (!at.driver.runtime.known()) {
    const bool newest = last.known() && !(at.driver.cuda < last);
    if (!at.driver.cuda.known() && !at.driver.module.empty())
      advice.fixes.push_back(fix_of("take-newer-driver/number", {{"driver", at.driver.module}}));
    if (at.driver.cuda.known())
      advice.fixes.push_back(fix_of(newest ? "use-older-build/program" : "take-newer-driver",
                                    {{"cuda", name(at.driver.cuda)},
                                     {"major", std::to_string(at.driver.cuda.major)},
                                     {"release", driver_beyond(at)}}));
    return;
  }
  const ToolkitRow* row = toolkit_at_most(at.driver.runtime);
  const bool beyond = last.known() && (at.driver.asked_by_container ? last < at.driver.runtime
                                                                    : last.major < at.driver.runtime.major);
  const bool known = row != nullptr && row->version.major == at.driver.runtime.major;
  // Before CUDA 11 each release asks for a driver of its own.
  const bool by_release = at.driver.asked_by_container || at.driver.runtime.major < 11;
  const std::string_view oldest = !by_release ? oldest_driver(at, at.driver.runtime.major)
                                  : known     ? row->driver
                                              : "";
  if (add_wheel_for_driver(at, advice.fixes)) {
    // The shortest way: no driver of the machine is touched.
  } else if (beyond && at.gpu.cc && !at.package.name.empty()) {
    const std::size_t before = advice.fixes.size();
    add_source_build(at, advice.fixes);
    if (advice.fixes.size() == before) add_wheel_fix(at, advice.fixes);
  }
  if (beyond) {
    advice.dead_ends.push_back(
        no_driver_update(fmt::format("R{} is the last branch for {} GPUs, and serves CUDA {} at most",
                                     gpu->last_branch, gpu->family, name(last))));
  } else if (!oldest.empty() && !(by_release && !at.driver.asked_by_container && has_driver(at, oldest))) {
    advice.fixes.push_back(
        {FixKind::upgrade_driver,
         driver_update(at, oldest),
         {},
         at.driver.asked_by_container
             ? fmt::format("that is the first for CUDA {}, which the image asks for", name(at.driver.runtime))
         : by_release ? fmt::format("that is the oldest that CUDA {} runs on", name(at.driver.runtime))
                      : fmt::format("that is the oldest that CUDA {}.x runs on", at.driver.runtime.major),
         at.gpu.cc ? "" : "if newer drivers no longer support your GPU, use one of the other fixes",
         "update-driver"});
  }
  if (!at.driver.cuda.known() && at.driver.asked_by_container)
    advice.fixes.push_back(fix_of("use-older-image"));
  if (at.driver.cuda.known() && at.driver.cuda < at.driver.runtime)
    advice.fixes.push_back(
        fix_of(at.driver.asked_by_container ? "use-older-build/image" : "use-older-build/program",
               {{"cuda", name(at.driver.cuda)}, {"major", std::to_string(at.driver.cuda.major)}}));
}

namespace {

// "550.54.15, for CUDA 12.4", and what of it is known.
std::string described(const Facts& at) {
  if (!at.driver.cuda.known()) return at.driver.module;
  const std::string cuda = fmt::format("for CUDA {}", name(at.driver.cuda));
  return at.driver.module.empty() ? cuda : fmt::format("{}, {}", at.driver.module, cuda);
}

}  // namespace

DriverSupport driver_support(const Facts& at) {
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  return gpu == nullptr ? DriverSupport::unknown : driver_support(*gpu, at.driver.cuda, at.driver.module);
}

void add_gpu_driver_fix(const Facts& at, DriverSupport serving, FixDrafts& fixes) {
  if (serving != DriverSupport::too_old && serving != DriverSupport::too_new) return;
  const GpuRow& gpu = *find_gpu(*at.gpu.cc);
  if (serving == DriverSupport::too_new) {
    fixes.push_back(fix_of("install-driver-branch", {{"branch", std::to_string(gpu.last_branch)},
                                                     {"family", std::string(gpu.family)}}));
    return;
  }
  const ToolkitRow* first = find_toolkit(gpu.first_toolkit);
  FixDraft fix{{FixKind::upgrade_driver,
                "",
                {},
                "the driver does not support this GPU, so no build can run on it",
                "",
                "update-driver"}};
  fix.title = gpu.tegra ? "Update JetPack, which brings the driver"
              : first != nullptr
                  ? driver_update(at, first->driver)
                  : fmt::format("Update the driver to one for CUDA {} or newer", name(gpu.first_toolkit));
  if (first != nullptr) fix.arguments = {{"driver", std::string(first->driver)}};
  if (gpu.last_branch != 0)
    fix.caveat = fmt::format("stay within branch R{}: it is the last one for this GPU", gpu.last_branch);
  fixes.push_back(std::move(fix));
}

Facts with_supported_driver(const Facts& at, DriverSupport serving) {
  Facts out = at;
  if (serving != DriverSupport::too_old && serving != DriverSupport::too_new) return out;
  const GpuRow& gpu = *find_gpu(*at.gpu.cc);
  out.driver.cuda = serving == DriverSupport::too_old ? gpu.first_toolkit : last_driver_cuda(gpu);
  out.driver.module.clear();
  return out;
}

void add_driver_remark(const Facts& at, DriverSupport serving, std::vector<std::string>& remarks) {
  switch (serving) {
    case DriverSupport::unknown:
      // A GPU that no table knows.
      return;
    case DriverSupport::yes:
      if (at.driver.cuda.known() && at.driver.runtime.major <= at.driver.cuda.major)
        remarks.push_back(fmt::format("Your driver ({}) is fine.", described(at)));
      return;
    case DriverSupport::too_old:
    case DriverSupport::too_new: {
      const GpuRow& gpu = *find_gpu(*at.gpu.cc);
      const std::string limit =
          serving == DriverSupport::too_old
              ? fmt::format(
                    "the drivers that came with CUDA {} are the first that know compute capability {}",
                    name(gpu.first_toolkit), image::to_name(gpu.cc).view())
              : fmt::format("R{} is the last branch for {} GPUs", gpu.last_branch, gpu.family);
      remarks.push_back(fmt::format(
          "A driver {}does not support this GPU: {}. The reported driver and GPU do not match: with this "
          "driver a program sees no such GPU. kshim doctor says what the machine has.",
          at.driver.cuda.known() ? fmt::format("for CUDA {} ", name(at.driver.cuda))
                                 : fmt::format("of version {} ", at.driver.module),
          limit));
      return;
    }
  }
}

namespace {

// "cupy-cuda13x" for CUDA 12: "cupy-cuda12x". Empty for a package that is not named by its CUDA, or that is
// for this CUDA already.
std::string renamed_for(std::string_view package, unsigned major) {
  constexpr std::string_view kCuda = "-cuda";
  const std::size_t at = package.rfind(kCuda);
  if (at == std::string_view::npos || !package.ends_with('x')) return {};
  const std::string out = fmt::format("{}{}{}x", package.substr(0, at), kCuda, major);
  return out == package ? std::string() : out;
}

// nvidia-cuda-nvrtc-cu12, nvidia-nvjitlink-cu12; since CUDA 13 without the suffix.
bool is_library_wheel(std::string_view package) {
  return package.starts_with("nvidia-cuda-nvrtc") || package.starts_with("nvidia-nvjitlink");
}

// NVIDIA's packages of the CUDA in a package's name, which nothing else in the environment asks for.
std::vector<std::string> left_of(const PythonEnvironment& environment, std::string_view package) {
  std::vector<std::string> out;
  const std::vector<Distribution> there = distributions_in(environment);
  // Since CUDA 13 their names have no number, and they share a folder.
  if (!package.ends_with("-cuda13x") || there.empty()) return out;
  const auto is_library = [](const std::string& name) {
    const ProjectName project(name);
    return (project.is_nvidias() && !contains(project.normal(), "-cu1")) || project == "cuda-toolkit";
  };
  for (const Distribution& each : there)
    if (is_library(each.name)) out.push_back(each.name);
  for (const Distribution& each : there) {
    if (is_library(each.name) || ProjectName(each.name) == ProjectName(package)) continue;
    for (const Demand& demand : each.demands)
      if (is_library(demand.project.shown())) return {};
  }
  return out;
}

void add_other_package(const Facts& at, std::string_view compiler, Version version, FixDrafts& fixes) {
  const std::string other = renamed_for(at.call.package, version.major);
  if (other.empty()) return;
  // CuPy's wheels bring no NVRTC. Those of CUDA 11 end before CuPy 14, which has the extra.
  const std::string_view libraries = other.starts_with("cupy-") && version.major >= 12 ? "[ctk]" : "";
  // Its libraries stay behind, and are found first. Where others ask for them, they stay.
  const std::vector<std::string> left = left_of(at.process.python_env, at.call.package);
  std::string gone = shell_quote(at.call.package);
  for (const std::string& name : left) gone += ' ' + shell_quote(name);
  fixes.push_back(
      fix_of("install-other-compiler-package", {{"other", other},
                                                {"other_word", shell_quote(other + std::string(libraries))},
                                                {"package", at.call.package},
                                                {"package_word", gone},
                                                {"compiler", std::string(compiler)},
                                                {"major", std::to_string(version.major)}}));
}

constexpr unsigned kFirstWithPackages = 12;  // the first CUDA that pip has JAX and a compiler for

// Triton asks its own ptxas, which is a program: another one does as well. XLA's comes with a package of
// NVIDIA's beside JAX.
bool add_ptxas_fix(const Facts& at, Version good, FixDrafts& fixes) {
  const bool selected = at.call.compiler && at.call.compiler->selects.starts_with("TRITON_");
  const bool of_xla =
      at.call.message.starts_with("xla_") || at.package.software == "jax" || at.package.name == "jax";
  if (of_xla && !selected && good.major >= kFirstWithPackages) {
    fixes.push_back(
        fix_of("use-newer-xla-ptxas", {{"cuda", name(good)}, {"cu", std::to_string(good.major)}}));
    return true;
  }
  if (!selected && !at.process.python && !at.process.torch && at.package.name != "triton" &&
      at.package.software != "triton")
    return false;
  fixes.push_back(fix_of("use-newer-ptxas", {{"cuda", name(good)}}));
  return true;
}

// What the user's nvcc builds of the same generation, and the GPU runs: 8.6 for an 8.9.
std::optional<image::ComputeCapability> older_of_generation(const Facts& at, image::Arch asked) {
  const ToolkitRow* here = at.images.toolkit.known() ? toolkit_at_most(at.images.toolkit) : nullptr;
  if (here == nullptr || asked.suffix != image::Suffix::none || image::is_tegra(asked.cc))
    return std::nullopt;
  std::optional<image::ComputeCapability> out;
  for (const GpuRow& gpu : gpus())
    if (gpu.cc.major == asked.cc.major && gpu.cc < asked.cc && !gpu.tegra &&
        builds_for(*here, {gpu.cc, image::Suffix::none}) && (!out || *out < gpu.cc))
      out = gpu.cc;
  return out;
}

// The build named an architecture that this nvcc does not have: another nvcc, or another list.
void add_nvcc_fix(const Facts& at, image::Arch asked, Version good, bool dropped, FixDrafts& fixes) {
  const bool for_device = at.gpu.cc && *at.gpu.cc == asked.cc;
  const std::string& variable = at.package.arch_variable;
  if (dropped && !for_device && !variable.empty() && !at.package.arch_flags &&
      !variable.starts_with("Kokkos_")) {
    const std::string number = !at.gpu.cc             ? (at.package.arch_dots ? "X.Y" : "XY")
                               : at.package.arch_dots ? std::string(image::to_name(*at.gpu.cc).view())
                                                      : sm_name(*at.gpu.cc).substr(3);
    fixes.push_back(fix_of("set-architecture",
                           {{"variable", variable},
                            {"number", number},
                            {"asked", std::string(image::to_name(image::ImageKind::cubin, asked).view())},
                            {"cuda", name(good)}}));
    return;
  }
  // What is newer than the GPU, a build for it can leave out as well.
  const bool beyond = !dropped && at.gpu.cc && *at.gpu.cc < asked.cc && !at.package.released;
  if ((dropped && !for_device) || beyond) {
    const std::string word(image::to_name(image::ImageKind::cubin, asked).view());
    fixes.push_back(fix_of(
        "drop-architecture",
        {{"asked", word},
         {"since",
          fmt::format("CUDA {} {} to build for it", name(good), beyond ? "is the first" : "was the last")},
         {"not_this", at.gpu.cc ? "this GPU does not need it, and " : ""},
         {"caveat",
          at.gpu.cc
              ? ""
              : "only where your GPU is of another: nvidia-smi --query-gpu=name,compute_cap --format=csv"}}));
    if (at.gpu.cc && dropped) return;
  }
  // A finished program names the architecture itself: no variable of a build reaches it.
  if (const auto own = older_of_generation(at, asked); own && !dropped && !at.package.released)
    fixes.push_back(fix_of(
        at.process.torch || !at.package.arch_variable.empty() ? "build-for-older/variable"
                                                              : "build-for-older/nvcc",
        {{"own", sm_name(*own)},
         {"digits", sm_name(*own).substr(3)},
         {"variable", at.package.arch_variable.empty() ? "TORCH_CUDA_ARCH_LIST" : at.package.arch_variable},
         {"value",
          at.package.arch_variable.empty() || at.package.arch_dots ? name(*own) : sm_name(*own).substr(3)},
         {"asked", sm_name(asked.cc)},
         {"cuda", name(at.images.toolkit)}}));
  FixDraft fix;
  fix.id = "build-with-other-cuda";
  fix.cuda = good;
  fix.kind = dropped ? FixKind::downgrade : FixKind::rebuild;
  fix.title = fmt::format("Build with CUDA {}{}", name(good), dropped ? "" : " or newer");
  fix.steps = {command_of("export CUDA_HOME=/usr/local/cuda-{cuda} PATH=/usr/local/cuda-{cuda}/bin:\"$PATH\"",
                          {{"cuda", name(good)}}),
               command_of("nvcc --version")};
  fix.why = asked.suffix == image::Suffix::none
                ? fmt::format("{} build for {}", toolkit_range(asked.cc), sm_name(asked.cc))
                : fmt::format("CUDA {} is the first that builds for {}", name(good),
                              image::to_name(image::ImageKind::cubin, asked).view());
  fix.caveat = "start again in an empty build folder: CMake keeps the compiler that it found";
  fixes.push_back(std::move(fix));
}

// The folder of a toolkit from a program in its bin or nvvm/bin.
std::string toolkit_of(std::string_view program) {
  for (const std::string_view below : {"/nvvm/bin/", "/bin/"}) {
    const std::size_t at = program.rfind(below);
    if (at != std::string_view::npos && program.find('/', at + below.size()) == std::string_view::npos)
      return std::string(program.substr(0, at));
  }
  return {};
}

// A compiler of this machine does, and a variable selects it.
bool add_selecting_fix(const CompilerFacts& compiler, FixDrafts& fixes) {
  const std::string toolkit = shell_quote(toolkit_of(compiler.other));
  if (compiler.other.empty() || compiler.selects.empty() || toolkit.empty()) return false;
  std::string command = fmt::format("export {}={}", compiler.selects, shell_quote(compiler.other));
  if (compiler.selects == "XLA_FLAGS")
    // JAX puts CUDA_ROOT, or a folder of nvidia's packages, above the flag.
    command =
        fmt::format("export CUDA_ROOT={0} XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_cuda_data_dir=\"{0}", toolkit);
  if (compiler.selects == "CUDA_HOME")
    command = fmt::format("export CUDA_HOME={0} PATH={0}/bin:\"$PATH\"", toolkit);
  fixes.push_back(
      {FixKind::environment,
       fmt::format("Use the {} of CUDA {} that is on this machine",
                   compiler.name.substr(0, compiler.name.find('-')), name(compiler.other_version)),
       {std::move(command)},
       fmt::format("{} accepts what {} rejected", compiler.other, compiler.path),
       compiler.selects == "CUDA_HOME"
           ? "start again in an empty build folder: a build keeps the compiler that it found"
       : compiler.other_version.major != compiler.version.major && compiler.selects.starts_with("TRITON_")
           ? "Triton takes only releases that it knows: 3.4.0 refuses those of CUDA 13"
           : "",
       "select-compiler",
       {{"variable", compiler.selects}, {"path", compiler.other}}});
  return true;
}

// tileiras comes with packages of its own, which belong together.
void add_tile_fix(const CompilerFacts& compiler, AdviceDraft& advice) {
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  const std::string asked(image::to_name(image::ImageKind::cubin, plain).view());
  const ToolkitRow* first = first_release_for(compiler.name, plain);
  if (first == nullptr) {
    advice.dead_ends.push_back(
        {"installing another tileiras",
         fmt::format("none up to CUDA {} compiles tiles for {}", name(toolkits().back().version), asked)});
    return;
  }
  advice.fixes.push_back(
      {FixKind::reinstall,
       fmt::format("Install the tileiras of CUDA {} or newer", name(first->version)),
       {fmt::format("pip install --upgrade {}",
                    shell_quote(fmt::format("cuda-toolkit[nvcc,nvvm,tileiras]>={}", name(first->version))))},
       fmt::format("CUDA {} is the first whose tileiras compiles for {}", name(first->version), asked),
       "",
       "install-newer-tileiras"});
}

// The input is of a newer ISA than the assembler reads.
bool add_isa_fix(const CompilerFacts& compiler, FixDrafts& fixes) {
  const ToolkitRow* row = find_toolkit(compiler.version);
  if (row == nullptr || !(row->isa < compiler.input_isa)) return false;
  const auto reads = std::find_if(toolkits().begin(), toolkits().end(),
                                  [&](const ToolkitRow& one) { return !(one.isa < compiler.input_isa); });
  if (reads == toolkits().end()) return false;
  const std::string good = name(reads->version);
  const std::string variable = compiler.selects.starts_with("TRITON_") ? compiler.selects : "PATH";
  fixes.push_back(
      {FixKind::environment,
       fmt::format("Use the ptxas of CUDA {} or newer", good),
       {variable == "PATH" ? fmt::format("export PATH=/usr/local/cuda-{}/bin:\"$PATH\"", good)
                           : fmt::format("export {}=/usr/local/cuda-{}/bin/ptxas", variable, good)},
       fmt::format("it is the first that reads PTX of ISA {}", image::to_name(compiler.input_isa).view()),
       "",
       "use-newer-ptxas"});
  return true;
}

// Of a compiler in a process of its own. False where what is said of all compilers is to be said.
bool add_program_fixes(CompilerFacts& compiler, AdviceDraft& advice) {
  if (compiler.path.empty()) return false;
  const ToolkitRow* row = find_toolkit(compiler.version);
  const bool knows = row != nullptr && compiles_for(compiler.name, *row, compiler.asked);
  if (add_selecting_fix(compiler, advice.fixes) ||
      ((knows || compiler.asked.cc.major == 0) && add_isa_fix(compiler, advice.fixes)))
    return true;
  if (is_tile_compiler(compiler.name)) {
    add_tile_fix(compiler, advice);
    return true;
  }
  const bool assembles = compiler.name.starts_with("ptxas") && compiler.selects != "CUDA_HOME";
  compiler.name = assembles ? "ptxas" : "nvcc";
  return false;
}

}  // namespace

void add_compiler_fixes(const Facts& at, AdviceDraft& advice) {
  CompilerFacts compiler = at.call.compiler.value_or(CompilerFacts{});
  if (add_program_fixes(compiler, advice)) return;
  if (compiler.asked.cc.major == 0 && at.gpu.cc) compiler.asked = {*at.gpu.cc, image::Suffix::none};
  // NVRTC refuses a GPU that is too new in the same words as one that is too old.
  if (!at.gpu.cc && compiler.asked.cc.major == 0 && at.call.message == "nvrtc_option")
    add_plain_fixes(at, advice.fixes);
  if (at.call.package.empty() && add_other_ways(at, advice.fixes) && !advice.fixes.empty()) return;
  if (compiler.asked.cc.major == 0) {
    if (!at.process.torch && advice.fixes.empty()) add_plain_fixes(at, advice.fixes);
    return;
  }
  if (compiler.name.empty()) compiler.name = "the compiler";
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  const std::string asked(image::to_name(image::ImageKind::ptx, plain).view());
  // The program asked for another architecture than that of its GPU.
  if (at.gpu.cc && *at.gpu.cc != compiler.asked.cc &&
      std::any_of(compiler.known.begin(), compiler.known.end(),
                  [&](image::Arch arch) { return arch.cc == *at.gpu.cc; })) {
    const image::ShortName own = image::to_name(image::ImageKind::ptx, {*at.gpu.cc, image::Suffix::none});
    advice.fixes.push_back(
        fix_of("ask-for-own-architecture",
               {{"own", std::string(own.view())}, {"compiler", compiler.name}, {"asked", asked}}));
    return;
  }
  const image::Arch wanted = first_toolkit_for(compiler.asked) != nullptr ? compiler.asked : plain;
  const ToolkitRow* first = first_toolkit_for(wanted);
  const ToolkitRow* last = last_toolkit_for(wanted);
  advice.dead_ends.push_back(no_driver_update(
      fmt::format("{} comes with CUDA or with a package, not with the driver", compiler.name)));
  if (first == nullptr) return;
  // Without its version: what the newest do not build for any more, a compiler refuses because it is too new.
  // So it does where the version that was read is another's: one that compiles for the GPU.
  const ToolkitRow* read = compiler.version.known() ? toolkit_at_most(compiler.version) : nullptr;
  const bool dropped = compiler.version.known() && (read == nullptr || !builds_for(*read, wanted))
                           ? last->version < compiler.version
                           : last != &toolkits().back();
  Version good = dropped ? last->version : first->version;
  // What the driver runs, where the log names it: newer programs would fail with 35.
  if (dropped && at.driver.cuda.known())
    for (const ToolkitRow& row : toolkits())
      if (builds_for(row, wanted) && !(at.driver.cuda < row.version)) good = row.version;
  const bool same_major = compiler.version.known() && good.major == compiler.version.major;
  // The toolkit that is there has a ptxas that does.
  if (compiler.name == "ptxas" && !dropped && read != nullptr && builds_for(*read, wanted) &&
      add_ptxas_fix(at, read->version, advice.fixes))
    return;
  // No wheel exchanges the nvcc of a build.
  if (at.process.torch && compiler.name != "nvcc") add_wheel_fix(at, advice.fixes, "torch");
  if (compiler.name == "ptxas" && !dropped && add_ptxas_fix(at, good, advice.fixes)) return;
  // What the log names would have built it: another one was found first.
  const ToolkitRow* named = compiler.version.known() ? find_toolkit(compiler.version) : nullptr;
  if (compiler.name == "nvcc" && compiler.path.empty() && named != nullptr && builds_for(*named, wanted)) {
    advice.fixes.push_back(
        fix_of("build-with-named-cuda", {{"cuda", name(named->version)}, {"gpu", sm_name(wanted.cc)}}));
    return;
  }
  if (compiler.name == "nvcc") {
    add_nvcc_fix(at, compiler.asked, good, dropped, advice.fixes);
    return;
  }
  if (!same_major) add_other_package(at, compiler.name, good, advice.fixes);
  if (at.call.package.empty() && !at.process.torch && add_wheel_fix(at, advice.fixes)) return;
  if (at.call.message.starts_with("llvm_")) return;  // LLVM comes with the package, not with CUDA
  FixDraft fix;
  fix.id = "compile-with-other-cuda";
  fix.cuda = good;
  fix.kind = dropped ? FixKind::downgrade : FixKind::reinstall;
  fix.title =
      fmt::format("Let the program compile with CUDA {} or {}", name(good), dropped ? "older" : "newer");
  fix.why = fmt::format("{} compile for {}", toolkit_range(compiler.asked.cc),
                        image::to_name(image::ImageKind::ptx, plain).view());
  // Which one the program loads, and a folder to put before it.
  if (at.package.name.empty() && at.call.package.empty() && !at.process.torch && compiler.name == "NVRTC")
    fix.steps = {
        command_of("LD_DEBUG=libs PROGRAM 2>&1 | grep -m1 'calling init.*nvrtc'", {}, &at.process.program),
        command_of("export LD_LIBRARY_PATH=/usr/local/cuda-{cuda}/lib64:\"$LD_LIBRARY_PATH\"",
                   {{"cuda", name(good)}})};
  if (compiler.name == "ptxas")
    fix.steps = {command_of("export PATH=/usr/local/cuda-{cuda}/bin:\"$PATH\"; ptxas --version",
                            {{"cuda", name(good)}})};
  if (same_major && is_library_wheel(at.package.name.normal()))
    fix.steps.push_back(
        command_of("pip install --upgrade {package}",
                   {{"package", shell_quote(fmt::format("{}>={}", at.package.name.shown(), name(good)))}}));
  if (!same_major)
    fix.caveat =
        fmt::format("the {} of another CUDA major version serves only programs that were built for that one",
                    compiler.name);
  advice.fixes.push_back(std::move(fix));
  if (dropped)
    advice.dead_ends.push_back({fmt::format("compiling with a CUDA newer than {}", name(last->version)),
                                fmt::format("it does not compile for {} any more", asked)});
}

}  // namespace kshim::advise

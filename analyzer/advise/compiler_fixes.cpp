// SPDX-License-Identifier: Apache-2.0
// What to do when NVRTC, nvJitLink, nvcc or ptxas does not compile for a GPU.
#include "analyzer/advise/fixes.h"
#include "analyzer/diagnose/compilers.h"
#include "analyzer/owner/distributions.h"
#include "kshim/image/compute_capability.h"

namespace kshim::advise {
using core::shell_quote;
using data::ToolkitRow;
using data::toolkits;
using diagnose::CompilerFacts;
using diagnose::Facts;

namespace {

using image::Version;

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
std::vector<std::string> left_of(const owner::PythonEnvironment& environment, std::string_view package) {
  std::vector<std::string> out;
  const std::vector<owner::Distribution> there = distributions_in(environment);
  // Since CUDA 13 their names have no number, and they share a folder.
  if (!package.ends_with("-cuda13x") || there.empty()) return out;
  const auto is_library = [](const std::string& name) {
    const data::ProjectName project(name);
    return (project.is_nvidias() && !core::contains(project.normal(), "-cu1")) || project == "cuda-toolkit";
  };
  for (const owner::Distribution& each : there)
    if (is_library(each.name)) out.push_back(each.name);
  for (const owner::Distribution& each : there) {
    if (is_library(each.name) || data::ProjectName(each.name) == data::ProjectName(package)) continue;
    for (const owner::Demand& demand : each.demands)
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
  if (of_xla && !selected) {
    fixes.push_back(
        good.major >= kFirstWithPackages
            ? fix_of("use-newer-xla-ptxas", {{"cuda", name(good)}, {"cu", std::to_string(good.major)}})
            : fix_of("use-newer-path-ptxas", {{"cuda", name(good)}}));
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
  const ToolkitRow* here = data::toolkit_at_most(at.images.toolkit);
  if (here == nullptr || asked.suffix != image::Suffix::none || image::is_tegra(asked.cc))
    return std::nullopt;
  std::optional<image::ComputeCapability> out;
  for (const data::GpuRow& gpu : data::gpus())
    if (gpu.cc.major == asked.cc.major && gpu.cc < asked.cc && !gpu.tegra &&
        builds_for(*here, {gpu.cc, image::Suffix::none}) && (!out || *out < gpu.cc))
      out = gpu.cc;
  return out;
}

// The build named an architecture that this nvcc does not have: another nvcc, or another list.
void add_nvcc_fix(const Facts& at, image::Arch asked, Version good, bool dropped, FixDrafts& fixes) {
  const bool for_device = (at.gpu.cc && *at.gpu.cc == asked.cc) || core::contains(at.gpu.others, asked.cc);
  const std::string& variable = at.package.arch_variable;
  if (dropped && !for_device && !variable.empty() && !at.package.arch_flags &&
      !variable.starts_with("Kokkos_")) {
    const std::string number = !at.gpu.cc             ? (at.package.arch_dots ? "X.Y" : "XY")
                               : at.package.arch_dots ? name(*at.gpu.cc)
                                                      : sm_name(*at.gpu.cc).substr(3);
    fixes.push_back(fix_of(
        "set-architecture",
        {{"variable", variable}, {"number", number}, {"asked", sm_name(asked)}, {"cuda", name(good)}}));
    return;
  }
  // What is newer than the GPU, a build for it can leave out as well.
  const bool beyond = !dropped && !for_device && at.gpu.cc && *at.gpu.cc < asked.cc && !at.package.released;
  if ((dropped && !for_device) || beyond) {
    fixes.push_back(fix_of(
        "drop-architecture",
        {{"asked", sm_name(asked)},
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
  fixes.push_back(fix_of(
      dropped ? "build-with-other-cuda/older" : "build-with-other-cuda/newer",
      {{"cuda", name(good)},
       {"why", asked.suffix == image::Suffix::none
                   ? fmt::format("{} build for {}", toolkit_range(asked.cc), sm_name(asked.cc))
                   : fmt::format("CUDA {} is the first that builds for {}", name(good), sm_name(asked))}}));
  fixes.back().cuda = good;
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
  const core::TemplateWords words = {
      {"program", compiler.name.substr(0, compiler.name.find('-'))},
      {"cuda", name(compiler.other_version)},
      {"other", compiler.other},
      {"path", compiler.path},
      {"variable", compiler.selects},
      {"value", shell_quote(compiler.other)},
      {"toolkit", toolkit},
      {"caveat",
       compiler.selects == "CUDA_HOME"
           ? "start again in an empty build folder: a build keeps the compiler that it found"
       : compiler.other_version.major != compiler.version.major && compiler.selects.starts_with("TRITON_")
           ? "Triton takes only releases that it knows: 3.4.0 refuses those of CUDA 13"
           : ""}};
  FixDraft fix = fix_of("select-compiler", words);
  // JAX puts CUDA_ROOT, or a folder of nvidia's packages, above the flag.
  fix.steps = {say::command_of(
      compiler.selects == "XLA_FLAGS"
          ? "export CUDA_ROOT={toolkit} XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_cuda_data_dir=\"{toolkit}"
      : compiler.selects == "CUDA_HOME" ? "export CUDA_HOME={toolkit} PATH={toolkit}/bin:\"$PATH\""
                                        : "export {variable}={value}",
      words)};
  fix.arguments = {{"variable", compiler.selects}, {"path", compiler.other}};
  fixes.push_back(std::move(fix));
  return true;
}

// tileiras comes with packages of its own, which belong together.
void add_tile_fix(const CompilerFacts& compiler, AdviceDraft& advice) {
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  const std::string asked = sm_name(plain);
  const ToolkitRow* first = diagnose::first_release_for(compiler.name, plain);
  if (first == nullptr) {
    advice.dead_ends.push_back(
        {"installing another tileiras",
         fmt::format("none up to CUDA {} compiles tiles for {}", name(toolkits().back().version), asked)});
    return;
  }
  advice.fixes.push_back(
      fix_of("install-newer-tileiras", {{"cuda", name(first->version)}, {"asked", asked}}));
}

// The input is of a newer ISA than the assembler reads.
bool add_isa_fix(const CompilerFacts& compiler, FixDrafts& fixes) {
  const ToolkitRow* row = data::find_toolkit(compiler.version);
  if (row == nullptr || !(row->isa < compiler.input_isa)) return false;
  const ToolkitRow* reads =
      data::first_row(toolkits(), [&](const ToolkitRow& one) { return !(one.isa < compiler.input_isa); });
  if (reads == nullptr) return false;
  const std::string folder = fmt::format("/usr/local/cuda-{}/bin", name(reads->version));
  const bool selected = compiler.selects.starts_with("TRITON_");
  fixes.push_back(fix_of("use-newer-ptxas/isa", {{"cuda", name(reads->version)},
                                                 {"isa", name(compiler.input_isa)},
                                                 {"variable", selected ? compiler.selects : "PATH"},
                                                 {"value", folder + (selected ? "/ptxas" : ":\"$PATH\"")}}));
  return true;
}

// Of a compiler in a process of its own. False where what is said of all compilers is to be said.
bool add_program_fixes(CompilerFacts& compiler, AdviceDraft& advice) {
  if (compiler.path.empty()) return false;
  const ToolkitRow* row = data::find_toolkit(compiler.version);
  const bool knows = row != nullptr && diagnose::compiles_for(compiler.name, *row, compiler.asked);
  if (add_selecting_fix(compiler, advice.fixes) ||
      ((knows || compiler.asked.cc.major == 0) && add_isa_fix(compiler, advice.fixes)))
    return true;
  if (diagnose::is_tile_compiler(compiler.name)) {
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
  const std::string asked = name(image::ImageKind::ptx, plain);
  // The program asked for another architecture than that of its GPU.
  if (at.gpu.cc && *at.gpu.cc != compiler.asked.cc &&
      core::contains(core::mapped(compiler.known, &image::Arch::cc), *at.gpu.cc)) {
    const image::Arch own{*at.gpu.cc, image::Suffix::none};
    advice.fixes.push_back(
        fix_of("ask-for-own-architecture",
               {{"own", name(image::ImageKind::ptx, own)}, {"compiler", compiler.name}, {"asked", asked}}));
    return;
  }
  const image::Arch wanted = data::first_toolkit_for(compiler.asked) != nullptr ? compiler.asked : plain;
  const ToolkitRow* first = data::first_toolkit_for(wanted);
  const ToolkitRow* last = data::last_toolkit_for(wanted);
  advice.dead_ends.push_back(no_driver_update(
      fmt::format("{} comes with CUDA or with a package, not with the driver", compiler.name)));
  if (first == nullptr) return;
  // Without its version: what the newest do not build for any more, a compiler refuses because it is too new.
  // So it does where the version that was read is another's: one that compiles for the GPU.
  const ToolkitRow* read = data::toolkit_at_most(compiler.version);
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
  const ToolkitRow* named = compiler.version.known() ? data::find_toolkit(compiler.version) : nullptr;
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
  FixDraft fix = fix_of(dropped ? "compile-with-other-cuda/older" : "compile-with-other-cuda/newer",
                        {{"cuda", name(good)},
                         {"range", toolkit_range(compiler.asked.cc)},
                         {"asked", asked},
                         {"other", same_major ? "" : compiler.name}});
  fix.cuda = good;
  // Which one the program loads, and a folder to put before it.
  if (at.package.name.empty() && at.call.package.empty() && !at.process.torch && compiler.name == "NVRTC")
    fix.steps = {say::command_of("LD_DEBUG=libs PROGRAM 2>&1 | grep -m1 'calling init.*nvrtc'", {},
                                 &at.process.program),
                 say::command_of("export LD_LIBRARY_PATH=/usr/local/cuda-{cuda}/lib64:\"$LD_LIBRARY_PATH\"",
                                 {{"cuda", name(good)}})};
  if (compiler.name == "ptxas")
    fix.steps = {say::command_of("export PATH=/usr/local/cuda-{cuda}/bin:\"$PATH\"; ptxas --version",
                                 {{"cuda", name(good)}})};
  if (same_major && is_library_wheel(at.package.name.normal()))
    fix.steps.push_back(say::command_of(
        "pip install --upgrade {package}",
        {{"package", shell_quote(fmt::format("{}>={}", at.package.name.shown(), name(good)))}}));
  advice.fixes.push_back(std::move(fix));
  if (dropped)
    advice.dead_ends.push_back({fmt::format("compiling with a CUDA newer than {}", name(last->version)),
                                fmt::format("it does not compile for {} any more", asked)});
}

}  // namespace kshim::advise

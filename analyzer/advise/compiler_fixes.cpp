// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/compiler_fixes.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/releases.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/compilers.h"

namespace kshim::analysis {
namespace {

using image::Version;

std::string name(Version version) { return std::string(image::to_name(version).view()); }

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

void add_other_package(const AdviceInput& at, std::string_view compiler, Version version,
                       std::vector<Fix>& fixes) {
  const std::string other = renamed_for(at.caller_package, version.major);
  if (other.empty()) return;
  fixes.push_back({FixKind::reinstall,
                   fmt::format("Install {} instead of {}", other, at.caller_package),
                   {fmt::format("pip uninstall -y {}", shell_quote(at.caller_package)),
                    fmt::format("pip install {}", shell_quote(other))},
                   fmt::format("it compiles with the {} of CUDA {}", compiler, version.major),
                   "the newest release may have dropped that CUDA: take the last that has it",
                   "install-other-compiler-package"});
}

// Triton asks its own ptxas, which is a program: another one does as well.
bool add_ptxas_fix(const AdviceInput& at, Version good, std::vector<Fix>& fixes) {
  const bool selected = at.compiler && at.compiler->selects.starts_with("TRITON_");
  if (!selected && !at.python && !at.torch && at.package != "triton" && at.software != "triton") return false;
  fixes.push_back(
      {FixKind::environment,
       fmt::format("Let Triton use the ptxas of CUDA {} or newer", name(good)),
       {fmt::format("export TRITON_PTXAS_PATH=/usr/local/cuda-{}/bin/ptxas", name(good)),
        "rm -rf ~/.triton/cache"},
       "the one that comes with Triton does not know this GPU yet",
       "newer releases of Triton have one of their own for Blackwell, TRITON_PTXAS_BLACKWELL_PATH; the "
       "driver must read what it makes",
       "use-newer-ptxas"});
  return true;
}

// The build named an architecture that this nvcc does not have: another nvcc, or another list.
void add_nvcc_fix(const AdviceInput& at, image::Arch asked, Version good, bool dropped,
                  std::vector<Fix>& fixes) {
  const bool for_device = at.device && *at.device == asked.cc;
  if (dropped && !for_device) {
    fixes.push_back(
        {FixKind::rebuild,
         fmt::format("Take {} out of the build's list",
                     image::to_name(image::ImageKind::cubin, asked).view()),
         {"grep -rnE 'compute_[0-9]|sm_[0-9]|CUDA_ARCHITECTURES|CUDA_ARCH' --include=CMakeLists.txt "
          "--include='Makefile*' "
          "--include='*.cmake' --include='*.mk' --include=setup.py ."},
         fmt::format("{}CUDA {} was the last to build for it", at.device ? "it is not this GPU's, and " : "",
                     name(good)),
         at.device
             ? ""
             : "only where your GPU is of another: nvidia-smi --query-gpu=name,compute_cap --format=csv",
         "drop-architecture"});
  }
  Fix fix;
  fix.id = "build-with-other-cuda";
  fix.kind = dropped ? FixKind::downgrade : FixKind::rebuild;
  fix.title = fmt::format("Build with CUDA {}{}", name(good), dropped ? "" : " or newer");
  fix.commands = {fmt::format("export CUDA_HOME=/usr/local/cuda-{} PATH=/usr/local/cuda-{}/bin:\"$PATH\"",
                              name(good), name(good)),
                  "nvcc --version"};
  fix.why = fmt::format("{} build for {}", toolkit_range(asked.cc),
                        image::to_name(image::ImageKind::cubin, {asked.cc, image::Suffix::none}).view());
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
bool add_selecting_fix(const CompilerFacts& compiler, std::vector<Fix>& fixes) {
  const std::string toolkit = shell_quote(toolkit_of(compiler.other));
  if (compiler.other.empty() || compiler.selects.empty() || toolkit.empty()) return false;
  std::string command = fmt::format("export {}={}", compiler.selects, shell_quote(compiler.other));
  if (compiler.selects == "XLA_FLAGS")
    command = fmt::format("export XLA_FLAGS=\"$XLA_FLAGS --xla_gpu_cuda_data_dir=\"{}", toolkit);
  if (compiler.selects == "CUDA_HOME")
    command = fmt::format("export CUDA_HOME={0} PATH={0}/bin:\"$PATH\"", toolkit);
  fixes.push_back(
      {FixKind::environment,
       fmt::format("Use the {} of CUDA {} that is on this machine",
                   compiler.name.substr(0, compiler.name.find('-')), name(compiler.other_version)),
       {std::move(command)},
       fmt::format("{} takes what {} refused", compiler.other, compiler.path),
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
void add_tile_fix(const CompilerFacts& compiler, Advice& advice) {
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
bool add_isa_fix(const CompilerFacts& compiler, std::vector<Fix>& fixes) {
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
bool add_program_fixes(CompilerFacts& compiler, Advice& advice) {
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

void add_compiler_fixes(const AdviceInput& at, Advice& advice) {
  CompilerFacts compiler = at.compiler.value_or(CompilerFacts{});
  if (add_program_fixes(compiler, advice)) return;
  if (compiler.asked.cc.major == 0 && at.device) compiler.asked = {*at.device, image::Suffix::none};
  if (compiler.asked.cc.major == 0) return;
  if (compiler.name.empty()) compiler.name = "the compiler";
  const image::Arch plain{compiler.asked.cc, image::Suffix::none};
  const std::string asked(image::to_name(image::ImageKind::ptx, plain).view());
  // The program asked for another architecture than that of its GPU.
  if (at.device && *at.device != compiler.asked.cc &&
      std::any_of(compiler.known.begin(), compiler.known.end(),
                  [&](image::Arch arch) { return arch.cc == *at.device; })) {
    const image::ShortName own = image::to_name(image::ImageKind::ptx, {*at.device, image::Suffix::none});
    advice.fixes.push_back({FixKind::code,
                            fmt::format("Ask for {}, which is this GPU's", own.view()),
                            {},
                            fmt::format("this {} compiles for it; {} is another GPU's", compiler.name, asked),
                            "",
                            "ask-for-own-architecture"});
    return;
  }
  const ToolkitRow* first = first_toolkit_for(plain);
  const ToolkitRow* last = last_toolkit_for(plain);
  advice.dead_ends.push_back(no_driver_update(
      fmt::format("{} comes with CUDA or with a package, not with the driver", compiler.name)));
  if (first == nullptr) return;
  // Without its version: what the newest do not build for any more, a compiler refuses because it is too new.
  const bool dropped =
      compiler.version.known() ? last->version < compiler.version : last != &toolkits().back();
  const Version good = dropped ? last->version : first->version;
  const bool same_major = compiler.version.known() && good.major == compiler.version.major;
  if (at.torch) add_wheel_fix(at, advice.fixes, "torch");
  if (compiler.name == "ptxas" && !dropped && add_ptxas_fix(at, good, advice.fixes)) return;
  if (compiler.name == "nvcc") {
    add_nvcc_fix(at, compiler.asked, good, dropped, advice.fixes);
    return;
  }
  if (!same_major) add_other_package(at, compiler.name, good, advice.fixes);
  if (at.caller_package.empty() && !at.torch && add_wheel_fix(at, advice.fixes)) return;
  Fix fix;
  fix.id = "compile-with-other-cuda";
  fix.kind = dropped ? FixKind::downgrade : FixKind::reinstall;
  fix.title =
      fmt::format("Let the program compile with CUDA {} or {}", name(good), dropped ? "older" : "newer");
  fix.why = fmt::format("{} compile for {}", toolkit_range(compiler.asked.cc),
                        image::to_name(image::ImageKind::ptx, plain).view());
  if (same_major && is_library_wheel(at.package))
    fix.commands.push_back(
        fmt::format("pip install --upgrade {}", shell_quote(fmt::format("{}>={}", at.package, name(good)))));
  if (!same_major)
    fix.caveat =
        fmt::format("the {} of another CUDA major version serves only programs that were built for that one",
                    compiler.name);
  advice.fixes.push_back(std::move(fix));
  if (dropped)
    advice.dead_ends.push_back({fmt::format("compiling with a CUDA newer than {}", name(last->version)),
                                fmt::format("it does not compile for {} any more", asked)});
}

}  // namespace kshim::analysis

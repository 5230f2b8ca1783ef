// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/compiler_fixes.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/releases.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"

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
  if (!at.python && !at.torch && at.package != "triton" && at.software != "triton") return false;
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

}  // namespace

void add_compiler_fixes(const AdviceInput& at, Advice& advice) {
  CompilerFacts compiler = at.compiler.value_or(CompilerFacts{});
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

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/compiler_fixes.h"
#include "analyzer/advise/dead_ends.h"
#include "analyzer/advise/driver_fixes.h"
#include "analyzer/advise/gpu_driver.h"
#include "analyzer/advise/interpreter.h"
#include "analyzer/advise/library_fixes.h"
#include "analyzer/advise/own_source.h"
#include "analyzer/advise/package_fixes.h"
#include "analyzer/advise/printable.h"
#include "analyzer/advise/rebuild.h"
#include "analyzer/advise/releases.h"
#include "analyzer/advise/remarks.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/advise/settle.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/advise/windows.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/program.h"
#include "analyzer/diagnose/rules.h"
#include "kshim/image/decompress.h"

namespace kshim::analysis {
namespace {

void add_plain_fixes(const AdviceInput& at, std::vector<Fix>& fixes) {
  struct Row {
    Cause cause;
    int code;
    FixKind kind;
    const char* title;
    const char* command;
    const char* why;
    const char* caveat;
  };
  constexpr Row kRows[] = {
#define KSHIM_PLAIN_FIX(cause, code, kind, title, command, why, caveat) \
  {Cause::cause, code, FixKind::kind, title, command, why, caveat},
#include "analyzer/advise/plain_fixes.def"
#undef KSHIM_PLAIN_FIX
#define KSHIM_CODE_MEANING(code, cause, confidence, headline, tells, kind, title, command, why, caveat, \
                           sources)                                                                     \
  {Cause::cause, code, FixKind::kind, title, command, why, caveat},
#include "analyzer/data/code_meanings.def"
#undef KSHIM_CODE_MEANING
  };
  const bool own_row =
      at.code.value_or(0) != 0 && std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& row) {
        return row.cause == at.cause && row.code == at.code;
      });
  for (const Row& row : kRows) {
    if (row.cause != at.cause || row.code != (own_row ? at.code.value_or(0) : 0)) continue;
    Fix fix{row.kind, row.title, {}, row.why, row.caveat, row_of(row.cause).name};
    if (*row.command != '\0') fix.commands.push_back(for_program(row.command, at.program));
    fixes.push_back(std::move(fix));
  }
}

void add_switch_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  const bool bypassed = at.cause == Cause::sass_bypassed;
  const char* why = bypassed ? "the file holds code for this GPU; without the switch the driver takes it"
                             : "the PTX fits this GPU; without the switch the driver compiles it";
  constexpr const char* kWhere =
      "set where the program is started: a shell profile, a job script or a container image";
  if (at.switch_names.empty()) {
    // The code says that one of them is on, and no list of the environment which.
    std::vector<std::string> names;
    std::string unset = "env";
    for (const SwitchRow& row : switches()) {
      const bool forces =
          row.field == &image::JitSwitches::force_ptx_jit || row.field == &image::JitSwitches::force_jit;
      if (forces != bypassed) continue;
      names.emplace_back(row.variable);
      unset += fmt::format(" -u {}", row.variable);
    }
    fixes.push_back({FixKind::environment,
                     fmt::format("Start it without {}", enumerate(names)),
                     {for_program(unset + " PROGRAM", at.program)},
                     fmt::format("one of them is on, and tells the driver to {}: {}",
                                 bypassed ? "ignore machine code" : "compile no PTX", why),
                     fmt::format("it is {}: env | grep -E 'CUDA_.*JIT'", kWhere),
                     "start-without-switch"});
    return;
  }
  const bool one = at.switch_names.size() == 1;
  fixes.push_back({FixKind::environment,
                   fmt::format("Unset {}", enumerate(at.switch_names)),
                   {"unset " + join(at.switch_names, " ")},
                   why,
                   fmt::format("{} {}", one ? "it is" : "they are", kWhere),
                   "unset-switch"});
}

// Somebody else built it: the user has no source to mend, and its makers may have done so.
void add_other_release_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  const std::string package = shell_quote(at.package);
  const bool conda = at.manager == "conda";
  fixes.push_back(
      {FixKind::reinstall,
       fmt::format("Try another release of {}", at.package),
       {fmt::format("{} {}", conda ? "conda search" : "python -m pip index versions", package)},
       fmt::format(
           "which kernels are compiled for which GPU is decided where {} is built{}", at.package,
           at.package_version.empty() ? "" : fmt::format("; {} leaves this one out", at.package_version)),
       "its release notes and issues tell which release has it; with its source at hand, the next way works "
       "too",
       "try-other-release"});
}

void add_kernel_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  fixes.push_back(
      {FixKind::code,
       "Compile the kernel for this GPU's architecture too",
       {"grep -rn __CUDA_ARCH__ ."},
       at.kernel_images.empty()
           ? "the image for this GPU was built without the kernel"
           : fmt::format(
                 "it is compiled into {} only: its definition stands behind an `#if __CUDA_ARCH__`, or its "
                 "file was built with another list of architectures",
                 enumerate(at.kernel_images)),
       "a kernel's definition must not depend on __CUDA_ARCH__; its body may",
       "compile-kernel-for-gpu"});
}

// The name asked for is text in the program: it must be the one that the image has.
void add_name_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  constexpr std::size_t kNamed = 4;
  const std::string lowered =
      at.loose ? "NVRTC tells the mangled name: nvrtcAddNameExpression, then nvrtcGetLoweredName" : "";
  if (!at.alike.empty()) {
    const std::string& name = at.alike.front();
    fixes.push_back({FixKind::code,
                     fmt::format("Ask for {}, or declare the kernel extern \"C\"", shorten(name, 60)),
                     {},
                     "C++ mangles a kernel's name by its parameters; extern \"C\" keeps it as it is written",
                     lowered,
                     "ask-for-declared-name"});
    return;
  }
  if (at.kernels.empty()) {
    fixes.push_back(
        {FixKind::code,
         "Ask for the kernel by its name in the image",
         {},
         "C++ mangles a kernel's name (scale becomes _Z5scalePf) unless it is declared extern \"C\"",
         lowered,
         "ask-for-image-name"});
    return;
  }
  std::vector<std::string> names(
      at.kernels.begin(),
      at.kernels.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, at.kernels.size())));
  for (std::string& name : names) name = shorten(name, 60);
  if (at.kernels.size() > kNamed) names.push_back(fmt::format("{} more", at.kernels.size() - kNamed));
  fixes.push_back({FixKind::code,
                   "Correct the name asked for, or the file that is loaded",
                   {},
                   fmt::format("the {} there {} {}", at.kernels.size() == 1 ? "kernel" : "kernels",
                               at.kernels.size() == 1 ? "is" : "are", enumerate(names)),
                   "",
                   "correct-kernel-name"});
}

void add_cache_fix(const AdviceInput& at, Advice& advice) {
  advice.fixes.push_back(
      {FixKind::environment, fmt::format("Delete it from {}'s cache", at.cache),
       at.removable.empty() ? std::vector<std::string>() : std::vector{"rm -r " + shell_quote(at.removable)},
       fmt::format("the next start compiles for the GPU that is there; {} did not look at the GPU when "
                   "it took the old one",
                   at.cache),
       fmt::format("where machines with different GPUs share a home, give each kind a folder of its "
                   "own by {}",
                   at.cache_variable),
       "delete-cache-entry"});
  advice.dead_ends.push_back({fmt::format("installing {} again", at.cache), "its cache stays as it is"});
}

void add_invalid_image_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  if ((comes_built(at) || !at.manager.empty()) && !at.package.empty()) {
    const std::string package = shell_quote(at.package);
    fixes.push_back(
        {FixKind::reinstall,
         "Install the package again",
         {at.manager == "conda"  ? "conda install --force-reinstall " + package
          : at.manager == "dpkg" ? "sudo apt-get install --reinstall " + package
          : at.manager == "rpm"  ? "sudo dnf reinstall " + package
          : !at.source.empty()   ? install_from(at.source)
                                 : "pip install --force-reinstall --no-deps --no-cache-dir " + package},
         "a torn download or copy damages device code without harming the rest of the file",
         "",
         "install-again"});
    return;
  }
  fixes.push_back({FixKind::rebuild,
                   "Build or copy the file again",
                   {},
                   "the driver cannot use the device code in it",
                   "",
                   "build-file-again"});
}

// What is in files that lie elsewhere.
void add_look_fixes(const AdviceInput& at, std::vector<Fix>& fixes) {
  const std::size_t named = std::min<std::size_t>(at.unread.size(), 3);
  std::string files;
  for (std::size_t i = 0; i < named; ++i) files += " " + shell_quote(at.unread[i]);
  fixes.push_back(
      {FixKind::environment,
       "Look at the files where they are",
       {fmt::format("kshim scan --target {}{}", at.need, files)},
       "it needs no GPU and runs nothing",
       at.unread.size() > named ? fmt::format("{} more files are named below", at.unread.size() - named) : "",
       "scan-files"});
  fixes.push_back({FixKind::environment,
                   "Record the run with the question",
                   {fmt::format("kshim run --target {} -- PROGRAM", at.need)},
                   "the shim then looks at everything that is registered or loaded",
                   "",
                   "record-target"});
}

// The image for the GPU is there, and its source leaves nothing of the kernel in it.
void add_body_fixes(const AdviceInput& at, Advice& advice) {
  if (at.taken && at.device && at.taken->arch.cc < *at.device) {
    const std::string need(image::to_name(image::ImageKind::cubin, {*at.device, image::Suffix::none}).view());
    advice.fixes.push_back(
        {FixKind::rebuild,
         fmt::format("Build it for {} as well", need),
         {fmt::format("nvcc -gencode arch=compute_{0},code=sm_{0} ...", need.substr(3))},
         fmt::format("the guard may let {} through: {} was compiled as {}, which it did not", need,
                     image::to_name(at.taken->kind, at.taken->arch).view(),
                     at.taken->arch.cc.major == at.device->major ? "an older one of its generation"
                                                                 : "an older architecture"),
         "the source tells: look for __CUDA_ARCH__ in the kernel",
         "rebuild"});
  }
  advice.fixes.push_back(
      {FixKind::code,
       "Give the kernel a body for this GPU, or launch another one",
       {"grep -rnE '__CUDA_ARCH__|CUTE_ARCH|ENABLE_SM' --include='*.cu*' --include='*.h*' ."},
       "an #if __CUDA_ARCH__ in its source leaves nothing of it for this architecture",
       "host code chooses by cudaGetDeviceProperties(), never by __CUDA_ARCH__, which it does not have",
       "write-kernel-body"});
  advice.fixes.push_back(
      {FixKind::code,
       "Use what the program has for such GPUs",
       {},
       "such kernels belong to a fast path that needs a newer GPU: another data type, backend or option "
       "avoids it",
       "",
       "use-other-path"});
  if (!at.taken) return;
  advice.dead_ends.push_back(
      {fmt::format("rebuilding for {} alone", image::to_name(at.taken->kind, at.taken->arch).view()),
       "it has that image, and the source leaves nothing in it"});
  advice.dead_ends.push_back(no_driver_update("it loaded the right image"));
}

void add_left_error_fixes(const AdviceInput& at, Advice& advice) {
  const std::string library = at.software.empty() ? "the library" : at.software;
  advice.fixes.push_back(
      {FixKind::code,
       fmt::format("Call cudaGetLastError() once after {} has been set up", library),
       {},
       "that clears what its probing has left; no kernel of the reporting library has failed",
       "",
       "clear-left-error"});
  advice.fixes.push_back({FixKind::reinstall,
                          fmt::format("Use a version of {} that clears its errors", library),
                          {},
                          "the library is to clean up after its own probing",
                          "newer releases of NCCL do so: pip install --upgrade nvidia-nccl-cu12 (or -cu13)",
                          "use-other-release"});
  if (!at.caller.empty())
    advice.dead_ends.push_back(
        {fmt::format("rebuilding {} for this GPU", at.caller), "none of its kernels was refused"});
}

// What works already, and takes time at each start.
void add_jit_fixes(const AdviceInput& at, std::vector<Fix>& fixes) {
  if (at.jit_cache_off)
    fixes.push_back({FixKind::environment,
                     "Let the driver keep what it has compiled",
                     {"unset CUDA_CACHE_DISABLE"},
                     "with its cache (~/.nv/ComputeCache) it compiles once, and not at every start",
                     "CUDA_CACHE_MAXSIZE bounds the cache",
                     "keep-jit-cache"});
  const bool forced = (at.switches.force_ptx_jit || at.switches.force_jit) && at.device &&
                      !at.images.empty() && select(at.images, at, {}).choice == image::Choice::sass;
  if (forced) {
    fixes.push_back({FixKind::environment,
                     fmt::format("Unset {}", enumerate(at.switch_names)),
                     {"unset " + join(at.switch_names, " ")},
                     "a cubin for this GPU is there; without the switch the driver takes it",
                     "",
                     "unset-switch"});
    return;
  }
  if (at.loose) return;  // compiled on purpose, by what made it
  // Without a file, nobody knows who would have to build what.
  if (at.object.empty()) add_plain_fixes(at, fixes);
  const std::size_t before = fixes.size();
  add_rebuild_fixes(at, fixes);
  if (!at.object.empty()) fixes.resize(std::min(fixes.size(), before + 1));  // it works: one way is enough
}

// Which GPU it is decides everything else.
void add_fix_for_any_gpu(const AdviceInput& at, std::vector<Fix>& fixes) {
  fixes.push_back(
      {comes_built(at) ? FixKind::reinstall : FixKind::rebuild,
       comes_built(at) ? "Install a build that has code for your GPU" : "Have code for your GPU built in",
       {"nvidia-smi --query-gpu=name,compute_cap --format=csv"},
       "for compute capability 8.6 that is -gencode arch=compute_86,code=sm_86, CMAKE_CUDA_ARCHITECTURES=86 "
       "or "
       "TORCH_CUDA_ARCH_LIST=8.6",
       "with --assume-cc 8.6, kshim says what it is for that GPU",
       "have-code-built"});
}

void add_hiding_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  if (at.serving_device.empty() || !is_image_cause(at.cause)) return;
  // A UUID is one GPU in every order.
  const bool number = at.serving_device.find_first_not_of("0123456789") == std::string::npos;
  fixes.push_back({FixKind::environment,
                   "Run on the GPU that the file has code for",
                   {fmt::format("CUDA_VISIBLE_DEVICES={} {}", shell_quote(at.serving_device),
                                for_program("PROGRAM", at.program))},
                   fmt::format("another GPU of this machine is served; hide this one from the program{}",
                               at.ranked ? ", and have its launcher start fewer processes" : ""),
                   number ? "CUDA counts the fastest GPU first, nvidia-smi by the slots: with "
                            "CUDA_DEVICE_ORDER=PCI_BUS_ID the number is that of nvidia-smi"
                          : "",
                   "use-served-gpu"});
}

// A run of a framework that has a way without a GPU, or the name of one.
bool may_do_without(const AdviceInput& at) {
  return at.python || at.torch || (at.object.empty() && !wheel_name(at.package).distribution.empty());
}

// What runs on no GPU at all, where nobody can build the code: slow, and today.
void add_fallback(const AdviceInput& at, std::vector<Fix>& fixes) {
  const bool may = is_image_cause(at.cause) || at.cause == Cause::library_refuses ||
                   at.cause == Cause::nvrtc_arch_unsupported;
  const bool quick = std::any_of(fixes.begin(), fixes.end(), [](const Fix& fix) {
    return fix.kind == FixKind::reinstall || fix.kind == FixKind::environment ||
           fix.kind == FixKind::upgrade_driver;
  });
  if (!may || at.cause == Cause::latent_gap || quick || !may_do_without(at)) return;
  fixes.push_back({FixKind::fallback,
                   "Run on the CPU",
                   {for_program("CUDA_VISIBLE_DEVICES= PROGRAM", at.program)},
                   "without a visible GPU, most frameworks take the CPU",
                   "slow, and only where the program has a way without a GPU",
                   "run-on-cpu"});
}

// What follows from what is said: the package from the software, the toolkit from the flavour.
AdviceInput completed(const AdviceInput& given) {
  AdviceInput at = given;
  if (at.package.empty() && at.object.empty()) at.package = at.software;
  const WheelName wheel = wheel_name(at.package, at.package_version, at.variant);
  if (at.variant.empty()) at.variant = wheel.variant;
  if (!at.toolkit.known() && at.variant.size() == 5 && at.variant.starts_with("cu") &&
      at.variant.find_first_not_of("0123456789", 2) == std::string::npos) {
    const auto digit = [&](std::size_t i) { return static_cast<std::uint16_t>(at.variant[i] - '0'); };
    at.toolkit = {static_cast<std::uint16_t>(digit(2) * 10 + digit(3)), digit(4)};
    at.toolkit_how = fmt::format("it is the {} build", at.variant);
  }
  return at;
}

// Commands that go to the Python that failed, that a shell takes as they stand, and that another user has no
// word in.
void keep_usable(const AdviceInput& at, std::vector<Fix>& fixes) {
  for_interpreter(fixes, at.python_env);
  keep_printable(fixes);
  if (!at.foreign.empty()) keep_free_of(at.foreign, fixes);
}

}  // namespace

Advice advise(const AdviceInput& given) {
  Advice advice;
  if (given.conflict || given.missing || !given.unread.empty()) {
    if (given.conflict) add_library_advice(given, advice);
    if (given.missing) add_missing_library_advice(*given.missing, advice);
    if (!given.unread.empty()) add_look_fixes(given, advice.fixes);
    keep_usable(given, advice.fixes);
    return advice;
  }
  const AdviceInput told = completed(given);
  const Serving serving = serving_of(told);
  const AdviceInput at = asks_for_the_driver(told) ? with_serving_driver(told, serving) : told;
  if (asks_for_the_driver(told)) add_gpu_driver_fix(told, serving, advice.fixes);
  if (has_trait(at.cause, cause_trait::switched)) add_switch_fix(at, advice.fixes);
  switch (at.cause) {
    case Cause::no_image_for_arch:
    case Cause::arch_specific_image:
    case Cause::ptx_newer_than_device:
    case Cause::ptx_jit_disabled:
      if (!at.device) add_fix_for_any_gpu(at, advice.fixes);
      if (const WheelRow* there = lacks_code(at.cause) ? serving_already(at) : nullptr) {
        add_serving_fixes(at, *there, advice);
      } else {
        add_rebuild_fixes(at, advice.fixes);
      }
      break;
    case Cause::stale_cache_artifact:
      add_cache_fix(at, advice);
      break;
    case Cause::jit_tax:
      add_jit_fixes(at, advice.fixes);
      break;
    case Cause::latent_gap:
      // What is there already, no list of architectures can add.
      if (at.guarded) {
        add_kernel_fix(at, advice.fixes);
      } else {
        add_rebuild_fixes(at, advice.fixes);
      }
      break;
    case Cause::ptx_newer_than_driver:
      add_newer_ptx_fixes(at, advice);
      break;
    case Cause::jit_compiler_missing:
      add_plain_fixes(at, advice.fixes);
      add_rebuild_fixes(at, advice.fixes);
      break;
    case Cause::kernel_missing_from_image:
      if (at.kernel_images.empty() && at.asked_by_name && at.code == 500) {
        add_name_fix(at, advice.fixes);
      } else {
        if (at.origin == Origin::installed && comes_built(at) && !at.package.empty())
          add_other_release_fix(at, advice.fixes);
        add_kernel_fix(at, advice.fixes);
      }
      break;
    case Cause::invalid_image:
      add_invalid_image_fix(at, advice.fixes);
      break;
    case Cause::compiled_out:
      add_body_fixes(at, advice);
      break;
    case Cause::unchecked_failure:
      advice.fixes.push_back({FixKind::code,
                              "Check the launch: cudaGetLastError() after <<<>>>",
                              {},
                              "a launch that is refused leaves its output as it was",
                              "compute-sanitizer PROGRAM names the call",
                              "check-launch"});
      break;
    case Cause::stale_error:
      add_left_error_fixes(at, advice);
      break;
    case Cause::driver_too_old:
      // No program failed: a GPU was asked about.
      if (!at.code && serving == Serving::too_old) {
        add_gpu_driver_fix(at, serving, advice.fixes);
        break;
      }
      add_runtime_fixes(at, advice);
      add_plain_fixes(at, advice.fixes);
      break;
    case Cause::library_refuses:
      if (!release_range(at).empty()) {
        add_listed_release_fix(at, advice.fixes);
      } else if (is_vendors(at) && at.device) {
        add_release_fix(at, advice.fixes);
      } else if (!at.object.empty() || !at.package.empty()) {
        add_rebuild_fixes(at, advice.fixes);
      }
      break;
    case Cause::cudnn_mismatch:
      if (!release_range(at).empty()) add_listed_release_fix(at, advice.fixes);
      add_plain_fixes(at, advice.fixes);
      break;
    case Cause::nvrtc_arch_unsupported:
      add_compiler_fixes(at, advice);
      break;
    case Cause::driver_too_old_for_image:
      add_newer_driver_fixes(at, advice);
      break;
    default:
      add_plain_fixes(at, advice.fixes);
  }
  add_hiding_fix(at, advice.fixes);
  add_fallback(at, advice.fixes);
  add_dead_ends(at, serving, advice);
  add_remarks(told, serving, advice);
  explain::add_remedies(at, advice);
  add_newer_than_known(told, advice.remarks);
  keep_usable(at, advice.fixes);
  if (at.windows) explain::translate(advice);
  return advice;
}

void advise(std::vector<Finding>& findings) {
  for (Finding& finding : findings) {
    if (!finding.about) continue;
    AdviceInput at = *finding.about;
    if (at.foreign.empty())
      at.removable = removable_cache_entry(at.cache_entry.empty() ? extension_folder(at) : at.cache_entry);
    Advice advice = advise(at);
    finding.fixes = std::move(advice.fixes);
    finding.dead_ends = std::move(advice.dead_ends);
    finding.remarks.insert(finding.remarks.begin(), std::make_move_iterator(advice.remarks.begin()),
                           std::make_move_iterator(advice.remarks.end()));
  }
  settle(findings);
  for (Finding& finding : findings) finding.about.reset();
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/advice.h"

#include <stdexcept>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/log.h"
#include "analyzer/diagnose/program.h"
#include "kshim/image/decompress.h"

namespace kshim::advise {
using core::Cause;
using core::contains;
using core::enumerate;
using core::Finding;
using core::Fix;
using core::FixKind;
using core::shell_quote;
using core::TemplateWords;
using diagnose::Facts;
using say::Command;

std::vector<Command> commands_of(std::string_view lines, const TemplateWords& words,
                                 const std::string* program) {
  std::vector<Command> out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (Command command = say::command_of(line, words, program); !command.empty())
      out.push_back(std::move(command));
  }
  return out;
}

FixDraft fix_of(std::string_view id, const TemplateWords& words, const std::string* program) {
  const data::FixRow* row =
      data::first_row(data::fixes(), [&](const data::FixRow& each) { return each.id == id; });
  if (row == nullptr) throw std::runtime_error(fmt::format("the tables in use have no fix `{}`", id));
  return fix_of_row(*row, row->id.substr(0, row->id.find('/')), words, program);
}

bool is_shown(std::string_view when, const Facts& at) {
  for (const std::string& word : core::split(when, " ")) {
    if (word.empty()) continue;
    const bool negated = word.starts_with('!');
    if (contains(at.process.shows, word.substr(negated ? 1 : 0)) == negated) return false;
  }
  return true;
}

bool has_windows_driver(const Facts& at) { return at.process.windows || contains(at.process.shows, "wsl"); }

void add_plain_fixes(const Facts& at, FixDrafts& fixes) {
  // Uses the rows of this error code, or otherwise the rows that apply to every code of the cause.
  int code = at.call.code.value_or(0);
  const auto is_of = [&](const auto& row) { return row.cause == at.cause && row.code == code; };
  const auto is_own = [&](const data::CauseFixRow& row) { return is_of(row) && is_shown(row.when, at); };
  if (std::ranges::none_of(data::cause_fixes(), is_own) && std::ranges::none_of(data::code_meanings(), is_of))
    code = 0;
  TemplateWords words;
  for (const auto& [word, text] : at.call.said) words.emplace_back(word, text);
  const auto add = [&](const auto& row) {
    if (is_of(row)) fixes.push_back(fix_of_row(row, row_of(row.cause).name, words, &at.process.program));
  };
  for (const data::CauseFixRow& row : data::cause_fixes())
    if (is_shown(row.when, at) && !has_gap(row.title, words)) add(row);
  for (const data::CodeMeaningRow& row : data::code_meanings()) add(row);
}

namespace {

void add_switch_fix(const Facts& at, FixDrafts& fixes) {
  const bool bypassed = at.cause == Cause::sass_bypassed;
  if (const auto names = data::names_of(at.driver.switches); !names.empty()) {
    fixes.push_back(fix_of(bypassed ? "unset-switch/forced" : "unset-switch/off",
                           {{"names", enumerate(names)},
                            {"variables", core::join(names, " ")},
                            {"they", names.size() == 1 ? "it is" : "they are"}}));
    return;
  }
  // The code says that one of them is on, and no list of the environment which.
  std::vector<std::string> names;
  std::string unset;
  for (const data::SwitchRow& row : data::switches()) {
    const bool forces =
        row.field == &image::JitSwitches::force_ptx_jit || row.field == &image::JitSwitches::force_jit;
    if (forces != bypassed) continue;
    names.emplace_back(row.variable);
    unset += fmt::format(" -u {}", row.variable);
  }
  fixes.push_back(fix_of(bypassed ? "start-without-switch/forced" : "start-without-switch/off",
                         {{"names", enumerate(names)}, {"unset", unset}}, &at.process.program));
}

// A third-party package: the user has no source, but another release may have the fix.
void add_other_release_fix(const Facts& at, FixDrafts& fixes) {
  fixes.push_back(fix_of(
      "try-other-release",
      {{"package", at.package.name.shown()},
       {"ask", at.package.manager == "conda" ? "conda search" : "python -m pip index versions"},
       {"word", shell_quote(at.package.name.shown())},
       {"left_out",
        at.package.version.empty() ? "" : fmt::format("; {} leaves this one out", at.package.version)}}));
}

void add_kernel_fix(const Facts& at, FixDrafts& fixes) {
  fixes.push_back(fix_of(
      "compile-kernel-for-gpu",
      {{"why",
        at.images.holders.empty()
            ? "the image for this GPU was built without the kernel"
            : fmt::format(
                  "it is compiled into {} only: its definition stands behind an `#if __CUDA_ARCH__`, or its "
                  "file was built with another list of architectures",
                  enumerate(at.images.holders))}}));
}

// The name asked for is text in the program: it must be the one that the image has.
void add_name_fix(const Facts& at, FixDrafts& fixes) {
  constexpr std::size_t kNamed = 4;
  constexpr std::size_t kRoom = 60;
  const std::string lowered =
      at.file.loose ? "NVRTC tells the mangled name: nvrtcAddNameExpression, then nvrtcGetLoweredName" : "";
  if (!at.images.alike.empty()) {
    fixes.push_back(fix_of("ask-for-declared-name",
                           {{"name", core::shorten(at.images.alike.front(), kRoom)}, {"lowered", lowered}}));
  } else if (at.images.kernels.empty()) {
    fixes.push_back(fix_of("ask-for-image-name", {{"lowered", lowered}}));
  } else {
    std::vector<std::string> names;
    for (const std::string& name :
         std::span(at.images.kernels).first(std::min(kNamed, at.images.kernels.size())))
      names.push_back(core::shorten(name, kRoom));
    if (at.images.kernels.size() > kNamed)
      names.push_back(fmt::format("{} more", at.images.kernels.size() - kNamed));
    fixes.push_back(
        fix_of("correct-kernel-name",
               {{"kernels_are", at.images.kernels.size() == 1 ? "kernel there is" : "kernels there are"},
                {"names", enumerate(names)}}));
  }
}

void add_cache_fix(const Facts& at, AdviceDraft& advice) {
  const auto* row =
      data::first_row(data::caches(), [&](const data::CacheRow& each) { return each.who == at.file.cache; });
  advice.fixes.push_back(
      fix_of("delete-cache-entry",
             {{"cache", at.file.cache},
              {"variable", std::string(row == nullptr ? "" : row->variable)},
              {"removable", at.file.removable.empty() ? "" : shell_quote(at.file.removable)}}));
  if (!at.file.cache.empty())
    advice.dead_ends.push_back(
        {fmt::format("installing {} again", at.file.cache), "reinstalling does not clear the cache"});
}

void add_invalid_image_fix(const Facts& at, FixDrafts& fixes) {
  constexpr int kInvalidPtx = 218;
  const bool of_pip = !at.package.name.empty() && data::comes_by_pip(at.package.name.shown());
  if (at.call.code == kInvalidPtx && at.file.path.empty() && !of_pip) {
    // Nobody here has the PTX of a finished program.
    if (at.package.released) fixes.push_back(fix_of("take-driver-for-program"));
    return fixes.push_back(fix_of("assemble-ptx", {{"arch", at.gpu.cc ? sm_name(*at.gpu.cc) : "sm_XY"}}));
  }
  if (at.package.manager.empty() && (!comes_built(at) || !of_pip)) {
    fixes.push_back(fix_of("build-file-again"));
    return;
  }
  const std::string_view pattern =
      at.package.manager == "conda"  ? "conda install --force-reinstall {package}"
      : at.package.manager == "dpkg" ? "sudo apt-get install --reinstall {package}"
      : at.package.manager == "rpm"  ? "sudo dnf reinstall {package}"
                                     : "pip install --force-reinstall --no-deps --no-cache-dir {package}";
  const bool from_source = at.package.manager.empty() || at.package.manager == "pip";
  FixDraft& fix = fixes.emplace_back(fix_of("install-again/package"));
  fix.steps.push_back(from_source && !at.package.source.empty()
                          ? install_from(at.package.source)
                          : say::command_of(pattern, {{"package", shell_quote(at.package.name.shown())}}));
}

// What is in files that lie elsewhere.
void add_look_fixes(const Facts& at, FixDrafts& fixes) {
  const std::size_t named = std::min<std::size_t>(at.file.unread.size(), 3);
  std::string files;
  for (std::size_t i = 0; i < named; ++i) files += " " + shell_quote(at.file.unread[i]);
  const std::size_t more = at.file.unread.size() - named;
  fixes.push_back(
      fix_of("scan-files", {{"need", at.file.need},
                            {"files", files},
                            {"more", more != 0 ? fmt::format("{} more files are named below", more) : ""}}));
  fixes.push_back(fix_of("record-target", {{"need", at.file.need}}));
}

// The image for the GPU is there, and its source leaves nothing of the kernel in it.
void add_body_fixes(const Facts& at, AdviceDraft& advice) {
  const std::string taken = at.images.taken ? name(*at.images.taken) : "";
  if (at.images.taken && at.gpu.cc && at.images.taken->arch.cc < *at.gpu.cc) {
    const std::string need = sm_name(*at.gpu.cc);
    advice.fixes.push_back(fix_of(
        "rebuild/guard",
        {{"need", need},
         {"digits", need.substr(3)},
         {"taken", taken},
         {"older", at.images.taken->arch.cc.major == at.gpu.cc->major ? "an older one of its generation"
                                                                      : "an older architecture"}}));
  }
  advice.fixes.push_back(fix_of("write-kernel-body"));
  advice.fixes.push_back(fix_of("use-other-path"));
  if (!at.images.taken) return;
  advice.dead_ends.push_back({fmt::format("rebuilding for {} alone", taken),
                              "the file already has that image; the source compiles to an empty body there"});
  advice.dead_ends.push_back(no_driver_update("it loaded the right image"));
}

void add_left_error_fixes(const Facts& at, AdviceDraft& advice) {
  const TemplateWords words = {
      {"library", at.package.software.empty() ? "the library" : at.package.software}};
  advice.fixes.push_back(fix_of("clear-left-error", words));
  advice.fixes.push_back(fix_of("use-other-release", words));
  if (!at.call.caller.empty())
    advice.dead_ends.push_back(
        {fmt::format("rebuilding {} for this GPU", at.call.caller), "none of its kernels was refused"});
}

// What Windows ends when a kernel holds up the screen, whatever the code.
void add_display_fix(const Facts& at, FixDrafts& fixes) {
  constexpr int kTimeout = 702;
  const bool reset = is_shown("display-reset", at) && (at.call.code == 719 || at.call.code == 999);
  if (at.process.windows && (at.call.code == kTimeout || reset))
    fixes.insert(fixes.begin(), fix_of("raise-display-limit"));
}

// Whose kernel it is decides: a user takes another release, and only an author looks for the access.
void add_fault_fix(const Facts& at, FixDrafts& fixes) {
  const std::string& software = at.package.software;
  const bool framework = input::is_framework(software);
  const bool end_user = is_shown("end-user", at) && (at.package.released || !at.package.builds);
  const bool anothers = at.package.released || !at.call.extension.empty() || !software.empty() || end_user;
  // A check in a kernel says more than its code, and an instruction is of the build.
  constexpr std::array kOwnReason = {702, 710, 715};
  if (!at.file.path.empty() || at.cause != Cause::device_fault ||
      (at.call.code && contains(kOwnReason, *at.call.code)))
    return;
  if (anothers && !framework && !at.package.from_source) {
    const std::string named = !at.package.name.empty() ? at.package.name.shown()
                              : !software.empty()      ? software
                                                       : at.call.extension;
    // A plain upgrade of what goes with one PyTorch exchanges that, for one without CUDA on Windows.
    const bool by_pip =
        data::comes_from_index(named) && !input::goes_with_torch(named) && !is_shown("not-python", at);
    fixes.insert(fixes.begin(),
                 fix_of(end_user ? "take-release-without-fault/end-user" : "take-release-without-fault",
                        {{"what", called(at, named)},
                         {"upgrade", by_pip ? fmt::format("pip install --upgrade {}", shell_quote(named))
                                            : std::string()}}));
  } else if (at.process.python && !at.package.builds) {
    fixes.insert(fixes.begin(), fix_of("find-failing-operation", {}, &at.process.program));
  }
}

// What works already, and takes time at each start.
void add_jit_fixes(const Facts& at, FixDrafts& fixes) {
  if (at.driver.jit_cache_off) fixes.push_back(fix_of("keep-jit-cache"));
  const bool forced = (at.driver.switches.force_ptx_jit || at.driver.switches.force_jit) && at.gpu.cc &&
                      !at.images.list.empty() && select(at.images.list, at, {}).choice == image::Choice::sass;
  if (forced) {
    const std::vector<std::string> names = data::names_of(at.driver.switches);
    fixes.push_back(
        fix_of("unset-switch/cubin", {{"names", enumerate(names)}, {"variables", core::join(names, " ")}}));
    return;
  }
  if (at.file.loose) return;  // compiled on purpose, by what made it
  // Without a file, it is not known which package would have to be built.
  if (at.file.path.empty()) add_plain_fixes(at, fixes);
  const std::size_t before = fixes.size();
  add_rebuild_fixes(at, fixes);
  if (!at.file.path.empty()) fixes.resize(std::min(fixes.size(), before + 1));  // it works: one way is enough
}

// Which GPU it is decides everything else.
void add_fix_for_any_gpu(const Facts& at, FixDrafts& fixes) {
  const std::size_t before = fixes.size();
  add_other_ways(at, fixes);
  if (fixes.size() != before) return;
  if (is_shown("jetson", at) && comes_built(at))
    return fixes.push_back(at.package.software == "torch"
                               ? fix_of("install-jetson-wheel")
                               : fix_of("install-jetson-wheel/other", {{"what", at.package.name.shown()}}));
  if ((comes_built(at) && at.package.build_system.empty()) || at.package.released || !at.package.builds)
    return add_other_build_fix(at, fixes);
  const bool kokkos = at.package.arch_variable.starts_with("Kokkos_ARCH_");
  fixes.push_back(fix_of(
      "have-code-built/source",
      {{"where",
        kokkos ? fmt::format(
                     "-DKokkos_ARCH_...=ON with the name of its generation (VOLTA70 is a V100, VOLTA72 a "
                     "Jetson Xavier, AMPERE80 an A100), in place of {}, in an empty build folder",
                     at.package.arch_variable)
        : at.package.arch_variable.empty()
            ? std::string("-gencode arch=compute_XY,code=sm_XY, "
                          "CMAKE_CUDA_ARCHITECTURES=XY or TORCH_CUDA_ARCH_LIST=X.Y")
            : fmt::format("{} in {}, which the log shows, and an empty build folder",
                          at.package.arch_flags  ? "-gencode arch=compute_XY,code=sm_XY"
                          : at.package.arch_dots ? "X.Y"
                                                 : "XY",
                          at.package.arch_variable)}}));
}

void add_hiding_fix(const Facts& at, FixDrafts& fixes) {
  if (at.gpu.serving.empty() || !is_image_cause(at.cause)) return;
  // A UUID is one GPU in every order.
  const bool number = at.gpu.serving.find_first_not_of("0123456789") == std::string::npos;
  fixes.push_back(
      fix_of("use-served-gpu",
             {{"device", shell_quote(at.gpu.serving)},
              {"ranked", at.process.ranked ? ", and have its launcher start fewer processes" : ""},
              {"order", number ? "CUDA counts the fastest GPU first, nvidia-smi by the slots: with "
                                 "CUDA_DEVICE_ORDER=PCI_BUS_ID the number is that of nvidia-smi"
                               : ""}},
             &at.process.program));
}

// What failed has a way without a GPU: as the table says, or PyTorch is there and nobody else is named.
bool may_do_without(const Facts& at) {
  const std::string distribution = data::wheel_name(at.package.name.normal()).distribution;
  const auto row = std::ranges::find_if(data::software(), [&](const data::SoftwareRow& each) {
    return !at.package.name.empty() && (at.package.name == each.package || each.package == distribution);
  });
  return row != data::software().end() ? row->cpu : at.process.torch;
}

// What runs on no GPU at all, where nobody can build the code: slow, and today.
void add_fallback(const Facts& at, FixDrafts& fixes) {
  const bool may = is_image_cause(at.cause) || at.cause == Cause::library_refuses ||
                   at.cause == Cause::nvrtc_arch_unsupported;
  const bool quick = std::ranges::any_of(fixes, [](const FixDraft& fix) {
    return fix.kind == FixKind::reinstall || fix.kind == FixKind::environment ||
           fix.kind == FixKind::upgrade_driver;
  });
  if (!may || at.cause == Cause::latent_gap || quick || !may_do_without(at)) return;
  // PowerShell has no empty variable.
  FixDraft cpu = fix_of(at.process.windows ? "run-on-cpu/windows" : "run-on-cpu", {}, &at.process.program);
  // Hours of building for a GPU that nobody builds for any more come last.
  const bool hopeless =
      !fixes.empty() && fixes.front().id == "build-from-source" && at.gpu.cc && at.gpu.cc->major < 4;
  fixes.insert(hopeless ? fixes.begin() : fixes.end(), std::move(cpu));
}

// In a container, what gives it its GPU comes before what looks for one; and where the commands belong.
void order_for_container(const Facts& at, FixDrafts& fixes) {
  if (!is_shown("container !kubernetes !enroot", at) || fixes.empty()) return;
  std::stable_partition(fixes.begin(), fixes.end(),
                        [](const FixDraft& fix) { return !steps_of<say::Container>(fix).empty(); });
  FixDraft& first = fixes.front();
  const bool changes =
      first.kind == FixKind::reinstall || first.kind == FixKind::rebuild || first.kind == FixKind::downgrade;
  if (!changes && first.kind != FixKind::upgrade_driver) return;
  add_clause(first.caveat,
             changes
                 ? "in a container, run it while building the image (a RUN line in the Dockerfile), or use a "
                   "newer image"
                 : "a container has the driver of its host: update it there");
}

// A finished image is exchanged as a whole, and not what is in it.
void add_image_fix(const Facts& at, FixDrafts& fixes) {
  const std::string& image = at.process.container_image;
  if (!lacks_code(at.cause) || !at.gpu.cc || input::is_base_image(image)) return;
  if (at.process.service.empty() && (image.empty() || at.package.builds)) return;
  const auto toolkits = toolkits_with_code(*at.gpu.cc);
  if (!toolkits) return;
  const bool dropped = last_before_dropped(at) != nullptr;
  fixes.insert(fixes.begin(), fix_of(image.empty() ? dropped ? "use-other-tag/older" : "use-other-tag/service"
                                                   : "use-other-tag",
                                     {{"image", image},
                                      {"service", at.process.service},
                                      {"repository", image.substr(0, image.find(':'))},
                                      {"age", dropped ? "an older" : "a newer"},
                                      {"gpu", sm_name(*at.gpu.cc)},
                                      {"cuda", *toolkits}}));
}

// The system that a file is for, by its name or the name of its wheel; empty where neither tells.
std::string_view platform_of_name(std::string_view path) {
  const std::string name = core::to_lower(path);
  const bool arm = contains(name, "win_arm64");
  if (arm) return "windows aarch64";
  if (contains(name, "-win_amd64.whl") || name.ends_with(".dll") || name.ends_with(".pyd"))
    return "windows x86_64";
  if (contains(name, "_aarch64.whl")) return "linux aarch64";
  return contains(name, "_x86_64.whl") ? "linux x86_64" : "";
}

// What follows from what is said: the system from the file, the package from the software, the toolkit from
// the wheel's variant.
Facts completed(const Facts& given) {
  Facts at = given;
  if (at.package.name.empty() && at.file.path.empty()) at.package.name = at.package.software;
  for (const std::string& path : {at.file.archive, at.file.path})
    if (at.package.platform.empty()) at.package.platform = platform_of_name(path);
  at.process.windows = at.process.windows || at.package.platform.starts_with("windows");
  // On PyPI, `pytorch` is a placeholder that raises an exception.
  if (at.package.name == "pytorch" && at.package.manager != "conda") at.package.name = "torch";
  const data::WheelName wheel =
      data::wheel_name(at.package.name.normal(), at.package.version, at.package.variant);
  if (at.package.variant.empty()) at.package.variant = wheel.variant;
  const image::Version cuda = cuda_of(at.package.variant);
  if (!at.images.toolkit.known() && at.package.variant == fmt::format("cu{}{}", cuda.major, cuda.minor)) {
    at.images.toolkit = cuda;
    at.images.toolkit_how = fmt::format("it is the {} build", at.package.variant);
  }
  return at;
}

}  // namespace

Advice printed(const Facts& at, AdviceDraft draft) {
  Advice out{{}, std::move(draft.dead_ends), std::move(draft.remarks)};
  const say::Shell shell{at.process.python_env, at.process.windows, at.process.interpreter,
                         is_shown("podman", at)};
  for (FixDraft& fix : draft.fixes) {
    for (const say::UpdateDriver* driver : steps_of<say::UpdateDriver>(fix))
      fix.title = title_of(*driver, has_windows_driver(at));
    if (fix.title.empty()) continue;  // a word that it needs is not known
    for (const Command& command : fix.steps) {
      fix.names_program = fix.names_program || command.names_program;
      if (std::string text = text_of(command, shell); !text.empty()) fix.commands.push_back(std::move(text));
    }
    out.fixes.push_back(std::move(fix));
  }
  keep_printable(out.fixes);
  return out;
}

namespace {

/// What one advice is made for.
struct Making {
  explicit Making(const Facts& facts) : told(completed(facts)), serving(driver_support(told)) {
    at = asks_for_the_driver(told) ? with_supported_driver(told, serving) : told;
    message = remedies_of(at);
  }
  Facts told;
  data::DriverSupport serving;
  Facts at;  ///< as it is once the driver drives the GPU
  Remedies message;
};

void add_cause_fixes(const Making& making, AdviceDraft& advice) {
  const Facts& at = making.at;
  if (has_trait(at.cause, core::cause_trait::switched)) add_switch_fix(at, advice.fixes);
  switch (at.cause) {
    case Cause::no_image_for_arch:
    case Cause::arch_specific_image:
    case Cause::ptx_newer_than_device:
    case Cause::ptx_jit_disabled:
      if (!at.gpu.cc) add_fix_for_any_gpu(at, advice.fixes);
      if (const data::WheelRow* there = lacks_code(at.cause) ? serving_already(at) : nullptr;
          there != nullptr || (at.package.works && at.gpu.cc)) {
        add_serving_fixes(at, there, advice);
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
      // The architecture is already in the list, so changing the list cannot help.
      if (at.images.guarded) {
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
      if (at.images.holders.empty() && at.call.by_name && at.call.code == 500) {
        add_name_fix(at, advice.fixes);
      } else {
        if (at.file.origin == diagnose::Origin::installed && comes_built(at) && !at.package.name.empty())
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
      advice.fixes.push_back(fix_of("check-launch"));
      break;
    case Cause::stale_error:
      add_left_error_fixes(at, advice);
      break;
    case Cause::driver_too_old:
      // No program failed: the user asked about a target GPU.
      if (!at.call.code && making.serving == data::DriverSupport::too_old) {
        add_gpu_driver_fix(at, making.serving, advice.fixes);
        break;
      }
      add_other_ways(at, advice.fixes);
      if (!advice.fixes.empty()) break;
      // A driver that serves the program's CUDA is not what to replace.
      if (!at.driver.cuda.known() || !at.images.toolkit.known() || at.driver.cuda < at.images.toolkit ||
          at.driver.asked_by_container)
        add_runtime_fixes(at, advice);
      add_plain_fixes(at, advice.fixes);
      break;
    case Cause::library_refuses:
      if (!release_range(at).empty()) {
        add_listed_release_fix(at, advice.fixes);
      } else if (is_vendors(at) && at.gpu.cc) {
        add_release_fix(at, advice.fixes);
      } else if (!at.file.path.empty() || !at.package.name.empty()) {
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
      add_fault_fix(at, advice.fixes);
      add_display_fix(at, advice.fixes);
  }
}

// The driver of a Jetson comes with its system, and that of a hosted notebook is its provider's: the user has
// what is built for it.
void keep_for_host(const Facts& at, FixDrafts& fixes) {
  const auto of_driver = [](const FixDraft& fix) { return fix.kind == FixKind::upgrade_driver; };
  if (is_shown("hosted", at)) {
    if (std::erase_if(fixes, of_driver) != 0 && (fixes.empty() || fixes.front().kind == FixKind::environment))
      fixes.insert(fixes.begin(), at.driver.cuda.known()
                                      ? fix_of("use-build-for-host", {{"cuda", name(at.driver.cuda)}})
                                      : fix_of("use-other-runtime"));
  } else if (is_shown("jetson", at)) {
    const auto first = std::ranges::find_if(fixes, of_driver);
    if (first == fixes.end()) return;
    *first = fix_of("update-jetpack");
    fixes.erase(std::remove_if(first + 1, fixes.end(), of_driver), fixes.end());
  }
}

// What was done already changed nothing; a release that ended the failure is known to.
void order_by_tries(const Facts& at, FixDrafts& fixes) {
  const auto untried = [&](const FixDraft& fix) {
    return !(fix.kind == FixKind::upgrade_driver && is_shown("tried-driver", at)) &&
           !(fix.id == "delete-cache-entry" && is_shown("tried-cache", at));
  };
  std::stable_partition(fixes.begin(), fixes.end(), untried);
  if (at.package.solution.empty()) return;
  const std::string& package = at.package.solution_of;
  const bool by_pip = data::comes_from_index(package) && !is_shown("not-python", at);
  fixes.insert(
      fixes.begin(),
      fix_of("install-solution",
             {{"package", package},
              {"release", at.package.solution},
              {"pin", by_pip ? shell_quote(fmt::format("{}=={}", package, at.package.solution)) : ""}}));
}

// What fails belongs to a machine that is not the user's: another one serves today.
void add_other_node(const Facts& at, FixDrafts& fixes) {
  const bool job = is_shown("batch", at);
  const bool rented = is_shown("managed", at) || is_shown("hosted", at);
  const bool pod = is_shown("kubernetes", at);
  if ((!job && !rented && !pod) || fixes.empty()) return;
  // Exclusive mode, ECC, NVLink, a contained fault, the fabric manager.
  constexpr std::array kOfMachine = {46, 214, 220, 226, 802};
  const std::string& message = at.call.message;
  // What reads the logs of a cluster's own pods is its administrator.
  const bool of_host = (job || rented) && fixes.front().needs(say::need::host);
  const bool reachable = at.cause != Cause::no_device && at.cause != Cause::driver_mismatch &&
                         at.call.code != 999 && message != "fabric_release";
  if ((at.call.code && contains(kOfMachine, *at.call.code)) ||
      (message.starts_with("xid_") && message != "xid_fault") || (of_host && !reachable))
    fixes.insert(fixes.begin(), fix_of(job      ? "use-other-node/batch"
                                       : rented ? "use-other-node/managed"
                                                : "use-other-node/kubernetes"));
}

// A driver is of the host. Where the host is not the user's (a container, a job), what the user can do comes
// first.
void set_actors(const Facts& at, FixDrafts& fixes) {
  const bool of_others = is_shown("batch", at) || is_shown("managed", at) || is_shown("hosted", at) ||
                         is_shown("kubernetes", at);
  for (FixDraft& fix : fixes)
    if ((fix.kind == FixKind::upgrade_driver && fix.id != "update-jetpack") ||
        (of_others && fix.needs(say::need::host)))
      fix.actor = core::Actor::admin;
  const bool shared =
      is_shown("container", at) || at.process.ranked || is_shown("batch", at) || is_shown("managed", at);
  if (shared)
    std::stable_partition(fixes.begin(), fixes.end(), [](const FixDraft& fix) {
      return fix.actor == core::Actor::you && fix.kind != FixKind::fallback;
    });
}

/// A step of making advice. Those of the cause are left out where the fixes of a log's message stand alone.
struct Pass {
  std::string_view name;
  enum Of : std::uint8_t { cause, all } of;
  void (*run)(const Making& making, AdviceDraft& advice);
};
constexpr Pass kPasses[] = {
    // A driver that does not drive the GPU: before that, no other fix helps.
    {"driver", Pass::cause,
     [](const Making& of, AdviceDraft& to) {
       if (asks_for_the_driver(of.told)) add_gpu_driver_fix(of.told, of.serving, to.fixes);
     }},
    // What ends the cause, soonest first.
    {"cause", Pass::cause, add_cause_fixes},
    // What works without ending it: another GPU of the machine, the CPU, another image of the container.
    {"served-gpu", Pass::cause, [](const Making& of, AdviceDraft& to) { add_hiding_fix(of.at, to.fixes); }},
    {"cpu", Pass::cause, [](const Making& of, AdviceDraft& to) { add_fallback(of.at, to.fixes); }},
    {"image", Pass::cause, [](const Making& of, AdviceDraft& to) { add_image_fix(of.at, to.fixes); }},
    {"container", Pass::cause,
     [](const Making& of, AdviceDraft& to) { order_for_container(of.at, to.fixes); }},
    {"dead-ends", Pass::cause,
     [](const Making& of, AdviceDraft& to) { add_dead_ends(of.at, of.serving, to); }},
    {"remarks", Pass::cause, [](const Making& of, AdviceDraft& to) { add_remarks(of.told, of.serving, to); }},
    // What the tables have for a log's message, and what it lists as installed: both come first.
    {"message", Pass::all, [](const Making& of, AdviceDraft& to) { add_remedies(of.message, to); }},
    {"listing", Pass::all, [](const Making& of, AdviceDraft& to) { add_by_listing(of.at, to.fixes); }},
    {"own-build", Pass::all, [](const Making& of, AdviceDraft& to) { use_own_command(of.at, to.fixes); }},
    // What cannot be done here goes or, where an installed package pins what it replaces, takes the owner
    // along; what is left says what it takes for granted.
    {"language", Pass::all, [](const Making& of, AdviceDraft& to) { keep_for_language(of.at, to.fixes); }},
    {"nix", Pass::all, [](const Making& of, AdviceDraft& to) { keep_for_nix(of.at, to.fixes); }},
    {"conda", Pass::all, [](const Making& of, AdviceDraft& to) { keep_for_conda(of.at, to.fixes); }},
    {"host", Pass::all, [](const Making& of, AdviceDraft& to) { keep_for_host(of.at, to.fixes); }},
    {"tries", Pass::all, [](const Making& of, AdviceDraft& to) { order_by_tries(of.at, to.fixes); }},
    {"feasible", Pass::all, [](const Making& of, AdviceDraft& to) { keep_feasible(of.at, to.fixes); }},
    {"pins", Pass::all, [](const Making& of, AdviceDraft& to) { keep_pins(of.at, to); }},
    {"assumed", Pass::all, [](const Making& of, AdviceDraft& to) { note_assumed(of.at, to.fixes); }},
    {"new", Pass::all, [](const Making& of, AdviceDraft& to) { add_newer_than_known(of.told, to.remarks); }},
    {"system", Pass::all,
     [](const Making& of, AdviceDraft& to) {
       if (of.at.process.windows) keep_for_windows(of.at, to.fixes);
     }},
};

}  // namespace

Advice advise_on(const Facts& given) {
  AdviceDraft advice;
  if (given.process.conflict) add_library_advice(given, advice);
  if (given.process.missing) add_missing_library_advice(*given.process.missing, advice);
  if (!given.file.unread.empty()) add_look_fixes(given, advice.fixes);
  if (given.process.conflict || given.process.missing || !given.file.unread.empty()) {
    set_actors(given, advice.fixes);
    return printed(given, std::move(advice));
  }
  const Making making(given);
  for (const Pass& pass : kPasses) {
    if (pass.of == Pass::cause && making.message.alone()) continue;
    pass.run(making, advice);
    if (core::logs_debug())
      core::log_debug(fmt::format("advice, {}: {} fixes", pass.name, advice.fixes.size()));
  }
  add_other_node(making.at, advice.fixes);
  set_actors(making.at, advice.fixes);
  return printed(making.at, std::move(advice));
}

std::string gist_of(const Advice& advice) {
  if (advice.fixes.empty()) return {};
  const Fix& first = advice.fixes.front();
  std::string out(first.id);
  // One build is for all of them.
  if (first.kind == FixKind::rebuild) return out;
  out += fmt::format(" {}.{}", first.cuda.major, first.cuda.minor);
  for (const auto& [name, value] : first.arguments)
    if (name != "gpu" && name != "number" && name != "gencode") out += fmt::format("\n{}={}", name, value);
  return out;
}

const Advice& AdviceCache::of(Facts at) {
  std::string program = std::exchange(at.process.program, {});
  const auto [first, end] = rows_.equal_range(at.file.path);
  const auto known = std::find_if(first, end, [&](const auto& row) {
    return row.second.program.value_or(program) == program && row.second.at == at;
  });
  if (known != end) return known->second.advice;
  Row row{at, std::nullopt, {}};
  at.process.program = program;
  row.advice = advise_on(at);
  if (std::ranges::any_of(row.advice.fixes, &Fix::names_program)) row.program = program;
  return rows_.emplace(at.file.path, std::move(row))->second.advice;
}

namespace {

template <class Row, class Same>
void add_new(std::vector<Row> more, std::vector<Row>& rows, Same same) {
  for (Row& row : more)
    if (std::ranges::none_of(rows, [&](const Row& known) { return same(known, row); }))
      rows.push_back(std::move(row));
}

void add_other_gpu(Advice more, Advice& sum) {
  add_new(std::move(more.fixes), sum.fixes, [](const Fix& a, const Fix& b) {
    return a.id == b.id && a.commands == b.commands && (!a.commands.empty() || a.title == b.title);
  });
  add_new(std::move(more.dead_ends), sum.dead_ends,
          [](const core::DeadEnd& a, const core::DeadEnd& b) { return a.action == b.action; });
  add_new(std::move(more.remarks), sum.remarks, std::equal_to<>());
}

}  // namespace

void advise_on(std::vector<Finding>& findings, const ForeignNames& foreign, AdviceCache* given) {
  for (Finding& finding : findings) {
    if (!finding.about) continue;
    const auto asked = [&](Facts at) {
      if (!at.process.foreign)
        at.file.removable =
            removable_cache_entry(at.file.cache_entry.empty() ? extension_folder(at) : at.file.cache_entry);
      return given != nullptr ? given->of(std::move(at)) : advise_on(at);
    };
    Advice advice = asked(*finding.about);
    for (const auto& other : finding.about_others) add_other_gpu(asked(*other), advice);
    if (finding.about->process.foreign) foreign.take_out_of(advice.fixes);
    finding.fixes = std::move(advice.fixes);
    if (!finding.fixes.empty() && !finding.fixes.front().assumed.empty())
      finding.confidence = std::min(finding.confidence, core::kMostIfAssumed);
    finding.dead_ends = std::move(advice.dead_ends);
    finding.remarks.insert(finding.remarks.begin(), std::make_move_iterator(advice.remarks.begin()),
                           std::make_move_iterator(advice.remarks.end()));
    const bool harms = finding.severity != core::Severity::info || finding.cause == Cause::jit_tax;
    if (harms && finding.fixes.empty() && finding.remarks.empty())
      finding.remarks.emplace_back("kshim knows no fix for this.");
  }
}

namespace {

std::string_view argument(const Fix& fix, std::string_view name) {
  for (const auto& [key, value] : fix.arguments)
    if (key == name) return value;
  return {};
}

bool is_of_torch(std::string_view package) {
  return package == "torch" || package == "torchvision" || package == "torchaudio" ||
         package == "pytorch-gpu";
}

// PyTorch's wheels pin these versions: pip replaces them together with PyTorch.
bool comes_with_torch(std::string_view package) {
  return package.starts_with("nvidia-") || package == "cuDNN" || package == "Triton" || package == "triton";
}

/// The first build of PyTorch that any finding asks for.
struct PrimaryFix {
  const Finding* finding = nullptr;
  Fix fix;
  std::string prefix;  ///< of the environment
};

PrimaryFix primary_fix(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings)
    for (const Fix& fix : finding.fixes)
      if (finding.about && is_of_torch(argument(fix, "package")))
        return {&finding, fix, finding.about->process.python_env.prefix};
  return {};
}

// Whether the build serves what the other finding is about.
bool serves(const Fix& fix, const Facts& at) {
  if (!at.gpu.cc) return false;
  const data::WheelRow* row =
      data::find_wheel(argument(fix, "package"), argument(fix, "release"), argument(fix, "variant"));
  return row != nullptr && serves(*row, *at.gpu.cc) != image::Choice::none;
}

bool is_needless(const PrimaryFix& leading, const Facts& at, const Fix& fix) {
  const std::string_view package = argument(fix, "package");
  if (package.empty() || at.process.python_env.prefix != leading.prefix) return false;
  if (comes_with_torch(package)) return true;
  return is_of_torch(package) && fix.arguments != leading.fix.arguments && serves(leading.fix, at);
}

// If any finding recommends a driver update, no finding may list it under "Will not help".
void drop_driver_dead_ends(std::vector<Finding>& findings) {
  const bool asked = std::ranges::any_of(findings, [](const Finding& finding) {
    return std::ranges::any_of(finding.fixes,
                               [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; });
  });
  if (!asked) return;
  for (Finding& finding : findings)
    std::erase_if(finding.dead_ends, [](const core::DeadEnd& row) { return row.of_driver; });
}

}  // namespace

void settle(std::vector<Finding>& findings) {
  drop_driver_dead_ends(findings);
  const PrimaryFix leading = primary_fix(findings);
  if (leading.finding == nullptr) return;
  for (Finding& finding : findings) {
    if (&finding == leading.finding || !finding.about) continue;
    const std::size_t dropped = std::erase_if(
        finding.fixes, [&](const Fix& fix) { return is_needless(leading, *finding.about, fix); });
    if (dropped != 0 && finding.fixes.empty())
      finding.remarks.push_back(fmt::format(
          "Fixed by the other finding (\"{}\"): pip then replaces this package as well.", leading.fix.title));
  }
}

}  // namespace kshim::advise

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/advice.h"

#include <stdexcept>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/diagnose/program.h"
#include "kshim/image/decompress.h"

namespace kshim::advise {

FixDraft fix_of(std::string_view id, const TemplateWords& words, std::string_view program) {
  for (const FixRow& row : fixes()) {
    if (row.id != id) continue;
    FixDraft out{{row.kind,
                  expand_filled(row.title, words),
                  {},
                  expand_filled(row.why, words),
                  expand_filled(row.caveat, words),
                  row.id.substr(0, row.id.find('/'))}};
    for (std::string_view rest = row.command; !rest.empty();) {  // a line is a command
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      Command command = command_of(line, words, program);
      if (!command.empty()) out.steps.push_back(std::move(command));
    }
    return out;
  }
  throw std::runtime_error(fmt::format("the tables in use have no fix `{}`", id));
}

bool is_shown(std::string_view when, const AdviceInput& at) {
  return when.empty() || std::ranges::find(at.shows, when) != at.shows.end();
}

void add_plain_fixes(const AdviceInput& at, FixDrafts& fixes) {
  // Uses the rows of this error code, or otherwise the rows that apply to every code of the cause.
  int code = at.code.value_or(0);
  const auto is_of = [&](const auto& row) { return row.cause == at.cause && row.code == code; };
  const auto own = [&](const auto& rows) { return std::any_of(rows.begin(), rows.end(), is_of); };
  if (!own(cause_fixes()) && !own(code_meanings())) code = 0;
  TemplateWords words;
  for (const auto& [word, text] : at.said) words.emplace_back(word, text);
  const auto add = [&](const auto& row) {
    if (!is_of(row)) return;
    FixDraft fix{{row.kind,
                  expand_filled(row.title, words),
                  {},
                  expand_filled(row.why, words),
                  expand_filled(row.caveat, words),
                  row_of(row.cause).name}};
    fix.actor = actor_of(row.who);
    if (!row.command.empty()) fix.steps.push_back(command_of(row.command, {}, at.program));
    fixes.push_back(std::move(fix));
  };
  for (const CauseFixRow& row : cause_fixes())
    if (is_shown(row.when, at)) add(row);
  for (const CodeMeaningRow& row : code_meanings()) add(row);
}

namespace {

void add_switch_fix(const AdviceInput& at, FixDrafts& fixes) {
  const bool bypassed = at.cause == Cause::sass_bypassed;
  if (!at.switch_names.empty()) {
    fixes.push_back(fix_of(bypassed ? "unset-switch/forced" : "unset-switch/off",
                           {{"names", enumerate(at.switch_names)},
                            {"variables", join(at.switch_names, " ")},
                            {"they", at.switch_names.size() == 1 ? "it is" : "they are"}}));
    return;
  }
  // The code says that one of them is on, and no list of the environment which.
  std::vector<std::string> names;
  std::string unset;
  for (const SwitchRow& row : switches()) {
    const bool forces =
        row.field == &image::JitSwitches::force_ptx_jit || row.field == &image::JitSwitches::force_jit;
    if (forces != bypassed) continue;
    names.emplace_back(row.variable);
    unset += fmt::format(" -u {}", row.variable);
  }
  fixes.push_back(fix_of(bypassed ? "start-without-switch/forced" : "start-without-switch/off",
                         {{"names", enumerate(names)}, {"unset", unset}}, at.program));
}

// A third-party package: the user has no source, but another release may have the fix.
void add_other_release_fix(const AdviceInput& at, FixDrafts& fixes) {
  fixes.push_back(fix_of(
      "try-other-release",
      {{"package", at.package.shown()},
       {"ask", at.manager == "conda" ? "conda search" : "python -m pip index versions"},
       {"word", shell_quote(at.package.shown())},
       {"left_out",
        at.package_version.empty() ? "" : fmt::format("; {} leaves this one out", at.package_version)}}));
}

void add_kernel_fix(const AdviceInput& at, FixDrafts& fixes) {
  fixes.push_back(fix_of(
      "compile-kernel-for-gpu",
      {{"why",
        at.kernel_images.empty()
            ? "the image for this GPU was built without the kernel"
            : fmt::format(
                  "it is compiled into {} only: its definition stands behind an `#if __CUDA_ARCH__`, or its "
                  "file was built with another list of architectures",
                  enumerate(at.kernel_images))}}));
}

// The name asked for is text in the program: it must be the one that the image has.
void add_name_fix(const AdviceInput& at, FixDrafts& fixes) {
  constexpr std::size_t kNamed = 4;
  constexpr std::size_t kRoom = 60;
  const std::string lowered =
      at.loose ? "NVRTC tells the mangled name: nvrtcAddNameExpression, then nvrtcGetLoweredName" : "";
  if (!at.alike.empty()) {
    fixes.push_back(
        fix_of("ask-for-declared-name", {{"name", shorten(at.alike.front(), kRoom)}, {"lowered", lowered}}));
  } else if (at.kernels.empty()) {
    fixes.push_back(fix_of("ask-for-image-name", {{"lowered", lowered}}));
  } else {
    std::vector<std::string> names;
    for (const std::string& name : std::span(at.kernels).first(std::min(kNamed, at.kernels.size())))
      names.push_back(shorten(name, kRoom));
    if (at.kernels.size() > kNamed) names.push_back(fmt::format("{} more", at.kernels.size() - kNamed));
    fixes.push_back(fix_of("correct-kernel-name",
                           {{"kernels_are", at.kernels.size() == 1 ? "kernel there is" : "kernels there are"},
                            {"names", enumerate(names)}}));
  }
}

void add_cache_fix(const AdviceInput& at, AdviceDraft& advice) {
  advice.fixes.push_back(
      fix_of("delete-cache-entry", {{"cache", at.cache},
                                    {"variable", at.cache_variable},
                                    {"removable", at.removable.empty() ? "" : shell_quote(at.removable)}}));
  if (!at.cache.empty())
    advice.dead_ends.push_back(
        {fmt::format("installing {} again", at.cache), "reinstalling does not clear the cache"});
}

void add_invalid_image_fix(const AdviceInput& at, FixDrafts& fixes) {
  constexpr int kInvalidPtx = 218;
  if (at.code == kInvalidPtx && at.object.empty() && at.package.empty()) {
    // Nobody here has the PTX of a finished program.
    if (at.released) fixes.push_back(fix_of("take-driver-for-program"));
    return fixes.push_back(fix_of("assemble-ptx", {{"arch", at.device ? sm_name(*at.device) : "sm_XY"}}));
  }
  if ((!comes_built(at) && at.manager.empty()) || at.package.empty()) {
    fixes.push_back(fix_of("build-file-again"));
    return;
  }
  const std::string_view pattern = at.manager == "conda"  ? "conda install --force-reinstall {package}"
                                   : at.manager == "dpkg" ? "sudo apt-get install --reinstall {package}"
                                   : at.manager == "rpm"
                                       ? "sudo dnf reinstall {package}"
                                       : "pip install --force-reinstall --no-deps --no-cache-dir {package}";
  const bool from_source = at.manager.empty() || at.manager == "pip";
  FixDraft& fix = fixes.emplace_back(fix_of("install-again/package"));
  fix.steps.push_back(from_source && !at.source.empty()
                          ? install_from(at.source)
                          : command_of(pattern, {{"package", shell_quote(at.package.shown())}}));
}

// What is in files that lie elsewhere.
void add_look_fixes(const AdviceInput& at, FixDrafts& fixes) {
  const std::size_t named = std::min<std::size_t>(at.unread.size(), 3);
  std::string files;
  for (std::size_t i = 0; i < named; ++i) files += " " + shell_quote(at.unread[i]);
  const std::size_t more = at.unread.size() - named;
  fixes.push_back(
      fix_of("scan-files", {{"need", at.need},
                            {"files", files},
                            {"more", more != 0 ? fmt::format("{} more files are named below", more) : ""}}));
  fixes.push_back(fix_of("record-target", {{"need", at.need}}));
}

// The image for the GPU is there, and its source leaves nothing of the kernel in it.
void add_body_fixes(const AdviceInput& at, AdviceDraft& advice) {
  const std::string taken(at.taken ? image::to_name(at.taken->kind, at.taken->arch).view() : "");
  if (at.taken && at.device && at.taken->arch.cc < *at.device) {
    const std::string need = sm_name(*at.device);
    advice.fixes.push_back(fix_of("rebuild/guard", {{"need", need},
                                                    {"digits", need.substr(3)},
                                                    {"taken", taken},
                                                    {"older", at.taken->arch.cc.major == at.device->major
                                                                  ? "an older one of its generation"
                                                                  : "an older architecture"}}));
  }
  advice.fixes.push_back(fix_of("write-kernel-body"));
  advice.fixes.push_back(fix_of("use-other-path"));
  if (!at.taken) return;
  advice.dead_ends.push_back({fmt::format("rebuilding for {} alone", taken),
                              "the file already has that image; the source compiles to an empty body there"});
  advice.dead_ends.push_back(no_driver_update("it loaded the right image"));
}

void add_left_error_fixes(const AdviceInput& at, AdviceDraft& advice) {
  const TemplateWords words = {{"library", at.software.empty() ? "the library" : at.software}};
  advice.fixes.push_back(fix_of("clear-left-error", words));
  advice.fixes.push_back(fix_of("use-other-release", words));
  if (!at.caller.empty())
    advice.dead_ends.push_back(
        {fmt::format("rebuilding {} for this GPU", at.caller), "none of its kernels was refused"});
}

// What works already, and takes time at each start.
void add_jit_fixes(const AdviceInput& at, FixDrafts& fixes) {
  if (at.jit_cache_off) fixes.push_back(fix_of("keep-jit-cache"));
  const bool forced = (at.switches.force_ptx_jit || at.switches.force_jit) && at.device &&
                      !at.images.empty() && select(at.images, at, {}).choice == image::Choice::sass;
  if (forced) {
    fixes.push_back(fix_of("unset-switch/cubin", {{"names", enumerate(at.switch_names)},
                                                  {"variables", join(at.switch_names, " ")}}));
    return;
  }
  if (at.loose) return;  // compiled on purpose, by what made it
  // Without a file, it is not known which package would have to be built.
  if (at.object.empty()) add_plain_fixes(at, fixes);
  const std::size_t before = fixes.size();
  add_rebuild_fixes(at, fixes);
  if (!at.object.empty()) fixes.resize(std::min(fixes.size(), before + 1));  // it works: one way is enough
}

// Which GPU it is decides everything else.
void add_fix_for_any_gpu(const AdviceInput& at, FixDrafts& fixes) {
  const std::size_t before = fixes.size();
  add_other_ways(at, fixes);
  if (fixes.size() != before) return;
  if ((comes_built(at) && at.build_system.empty()) || at.released || !at.builds)
    return add_other_build_fix(at, fixes);
  const bool kokkos = at.arch_variable.starts_with("Kokkos_ARCH_");
  fixes.push_back(fix_of(
      "have-code-built/source",
      {{"where",
        kokkos ? fmt::format(
                     "-DKokkos_ARCH_...=ON with the name of its generation (VOLTA70 is a V100, VOLTA72 a "
                     "Jetson Xavier, AMPERE80 an A100), in place of {}, in an empty build folder",
                     at.arch_variable)
        : at.arch_variable.empty() ? std::string("-gencode arch=compute_XY,code=sm_XY, "
                                                 "CMAKE_CUDA_ARCHITECTURES=XY or TORCH_CUDA_ARCH_LIST=X.Y")
                                   : fmt::format("{} in {}, which the log shows, and an empty build folder",
                                                 at.arch_flags  ? "-gencode arch=compute_XY,code=sm_XY"
                                                 : at.arch_dots ? "X.Y"
                                                                : "XY",
                                                 at.arch_variable)}}));
}

void add_hiding_fix(const AdviceInput& at, FixDrafts& fixes) {
  if (at.serving_device.empty() || !is_image_cause(at.cause)) return;
  // A UUID is one GPU in every order.
  const bool number = at.serving_device.find_first_not_of("0123456789") == std::string::npos;
  fixes.push_back(
      fix_of("use-served-gpu",
             {{"device", shell_quote(at.serving_device)},
              {"ranked", at.ranked ? ", and have its launcher start fewer processes" : ""},
              {"order", number ? "CUDA counts the fastest GPU first, nvidia-smi by the slots: with "
                                 "CUDA_DEVICE_ORDER=PCI_BUS_ID the number is that of nvidia-smi"
                               : ""}},
             at.program));
}

// What failed has a way without a GPU: as the table says, or PyTorch is there and nobody else is named.
bool may_do_without(const AdviceInput& at) {
  const std::string distribution = wheel_name(at.package.normal()).distribution;
  const auto row = std::find_if(software().begin(), software().end(), [&](const SoftwareRow& each) {
    return !at.package.empty() && (at.package == each.package || each.package == distribution);
  });
  return row != software().end() ? row->cpu : at.torch;
}

// What runs on no GPU at all, where nobody can build the code: slow, and today.
void add_fallback(const AdviceInput& at, FixDrafts& fixes) {
  const bool may = is_image_cause(at.cause) || at.cause == Cause::library_refuses ||
                   at.cause == Cause::nvrtc_arch_unsupported;
  const bool quick = std::any_of(fixes.begin(), fixes.end(), [](const FixDraft& fix) {
    return fix.kind == FixKind::reinstall || fix.kind == FixKind::environment ||
           fix.kind == FixKind::upgrade_driver;
  });
  if (!may || at.cause == Cause::latent_gap || quick || !may_do_without(at)) return;
  // Hours of building for a GPU that nobody builds for any more come last.
  const bool hopeless =
      !fixes.empty() && fixes.front().id == "build-from-source" && at.device && at.device->major < 4;
  fixes.insert(hopeless ? fixes.begin() : fixes.end(), fix_of("run-on-cpu", {}, at.program));
}

// Where the commands belong if it ran in a container.
void add_container_note(FixDrafts& fixes) {
  if (fixes.empty()) return;
  FixDraft& first = fixes.front();
  const bool changes =
      first.kind == FixKind::reinstall || first.kind == FixKind::rebuild || first.kind == FixKind::downgrade;
  if (!changes && first.kind != FixKind::upgrade_driver) return;
  if (!first.caveat.empty()) first.caveat += "; ";
  first.caveat += changes ? "in a container, run it while building the image (a RUN line in the Dockerfile), "
                            "or use a newer image"
                          : "a container has the driver of its host: update it there";
}

// A finished image is exchanged as a whole, and not what is in it.
void add_image_fix(const AdviceInput& at, FixDrafts& fixes) {
  if (at.container_image.empty() || !lacks_code(at.cause) || !at.device || at.builds) return;
  const ToolkitRow* last = last_with_code_for(*at.device);
  const ToolkitRow* first = first_toolkit_for({*at.device, image::Suffix::none});
  if (last == nullptr || first == nullptr) return;
  const bool dropped = last != &toolkits().back();
  fixes.insert(
      fixes.begin(),
      fix_of("use-other-tag", {{"image", at.container_image},
                               {"repository", at.container_image.substr(0, at.container_image.find(':'))},
                               {"age", dropped ? "an older" : "a newer"},
                               {"gpu", sm_name(*at.device)},
                               {"cuda", dropped ? fmt::format("CUDA {} or older", name(last->version))
                                                : fmt::format("CUDA {} or newer", name(first->version))}}));
}

// The system that a file is for, by its name or the name of its wheel; empty where neither tells.
std::string_view platform_of_name(std::string_view path) {
  const std::string name = to_lower(path);
  const bool arm = contains(name, "win_arm64");
  if (arm) return "windows aarch64";
  if (contains(name, "-win_amd64.whl") || name.ends_with(".dll") || name.ends_with(".pyd"))
    return "windows x86_64";
  if (contains(name, "_aarch64.whl")) return "linux aarch64";
  return contains(name, "_x86_64.whl") ? "linux x86_64" : "";
}

// What follows from what is said: the system from the file, the package from the software, the toolkit from
// the wheel's variant.
AdviceInput completed(const AdviceInput& given) {
  AdviceInput at = given;
  if (at.package.empty() && at.object.empty()) at.package = at.software;
  for (const std::string& path : {at.archive, at.object})
    if (at.platform.empty()) at.platform = platform_of_name(path);
  at.windows = at.windows || at.platform.starts_with("windows");
  // On PyPI, `pytorch` is a placeholder that raises an exception.
  if (at.package == "pytorch" && at.manager != "conda") at.package = "torch";
  const WheelName wheel = wheel_name(at.package.normal(), at.package_version, at.variant);
  if (at.variant.empty()) at.variant = wheel.variant;
  if (!at.toolkit.known() && at.variant.size() == 5 && at.variant.starts_with("cu") &&
      at.variant.find_first_not_of("0123456789", 2) == std::string::npos) {
    const auto digit = [&](std::size_t i) { return static_cast<std::uint16_t>(at.variant[i] - '0'); };
    at.toolkit = {static_cast<std::uint16_t>(digit(2) * 10 + digit(3)), digit(4)};
    at.toolkit_how = fmt::format("it is the {} build", at.variant);
  }
  return at;
}

/// The fixes with the text of their commands, for the Python that failed.
Advice printed(const AdviceInput& at, AdviceDraft draft) {
  Advice out{{}, std::move(draft.dead_ends), std::move(draft.remarks)};
  // A word that its title needs is not known.
  std::erase_if(draft.fixes, [](const FixDraft& fix) { return fix.title.empty(); });
  const Shell shell{at.python_env, at.windows, at.interpreter};
  for (FixDraft& fix : draft.fixes) {
    for (const Command& command : fix.steps)
      if (std::string text = text_of(command, shell); !text.empty()) fix.commands.push_back(std::move(text));
    out.fixes.push_back(std::move(fix));
  }
  keep_printable(out.fixes);
  return out;
}

}  // namespace

namespace {

Advice advice_on(const AdviceInput& given) {
  AdviceDraft advice;
  if (given.conflict || given.missing || !given.unread.empty()) {
    if (given.conflict) add_library_advice(given, advice);
    if (given.missing) add_missing_library_advice(*given.missing, advice);
    if (!given.unread.empty()) add_look_fixes(given, advice.fixes);
    return printed(given, std::move(advice));
  }
  const AdviceInput told = completed(given);
  const DriverSupport serving = driver_support(told);
  const AdviceInput at = asks_for_the_driver(told) ? with_supported_driver(told, serving) : told;
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
      // The architecture is already in the list, so changing the list cannot help.
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
      advice.fixes.push_back(fix_of("check-launch"));
      break;
    case Cause::stale_error:
      add_left_error_fixes(at, advice);
      break;
    case Cause::driver_too_old:
      // No program failed: the user asked about a target GPU.
      if (!at.code && serving == DriverSupport::too_old) {
        add_gpu_driver_fix(at, serving, advice.fixes);
        break;
      }
      add_other_ways(at, advice.fixes);
      if (!advice.fixes.empty()) break;
      // A driver that serves the program's CUDA is not what to replace.
      if (!at.driver.known() || !at.toolkit.known() || at.driver < at.toolkit || at.asks_for_cuda)
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
  add_image_fix(at, advice.fixes);
  if (at.container) {
    // What gives a container its GPU comes before what looks for one.
    std::ranges::stable_partition(advice.fixes, &FixDraft::runs_container);
    add_container_note(advice.fixes);
  }
  add_dead_ends(at, serving, advice);
  add_remarks(told, serving, advice);
  add_remedies(at, advice);
  add_by_listing(at, advice.fixes);
  if (is_shown("not-python", at)) keep_without_python(advice.fixes);
  keep_feasible(at, advice.fixes);
  note_assumed(at, advice.fixes);
  add_newer_than_known(told, advice.remarks);
  if (at.windows) keep_for_windows(at, advice.fixes, !given.windows);
  return printed(at, std::move(advice));
}

// A driver is of the host. Where the host is not the user's (a container, a job), what the user can do comes
// first.
void set_actors(const AdviceInput& at, std::vector<Fix>& fixes) {
  for (Fix& fix : fixes)
    if (fix.kind == FixKind::upgrade_driver) fix.actor = Actor::admin;
  const bool shared = at.container || at.ranked || is_shown("batch", at) || is_shown("managed", at);
  if (shared)
    std::ranges::stable_partition(
        fixes, [](const Fix& fix) { return fix.actor == Actor::you && fix.kind != FixKind::fallback; });
}

}  // namespace

Advice advise_on(const AdviceInput& given) {
  Advice advice = advice_on(given);
  set_actors(given, advice.fixes);
  return advice;
}

bool names_program(const std::vector<Fix>& fixes, std::string_view program) {
  // From there on for_interpreter() may have changed it.
  const std::size_t kept = std::min(program.find("pip "), program.find("conda "));
  const std::string_view text = program.empty() ? kProgramWord : program.substr(0, kept);
  return std::ranges::any_of(fixes, [&](const Fix& fix) {
    return std::ranges::any_of(fix.commands,
                               [&](const std::string& command) { return contains(command, text); });
  });
}

const Advice& AdviceCache::of(AdviceInput at) {
  std::string program = std::exchange(at.program, {});
  const auto [first, end] = rows_.equal_range(at.object);
  const auto known = std::find_if(first, end, [&](const auto& row) {
    return row.second.program.value_or(program) == program && row.second.at == at;
  });
  if (known != end) return known->second.advice;
  Row row{at, std::nullopt, {}};
  at.program = program;
  row.advice = advise_on(at);
  if (names_program(row.advice.fixes, program)) row.program = program;
  return rows_.emplace(at.object, std::move(row))->second.advice;
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
          [](const DeadEnd& a, const DeadEnd& b) { return a.action == b.action; });
  add_new(std::move(more.remarks), sum.remarks, std::equal_to<>());
}

}  // namespace

void advise_on(std::vector<Finding>& findings, const ForeignNames& foreign, AdviceCache* given) {
  for (Finding& finding : findings) {
    if (!finding.about) continue;
    const auto asked = [&](AdviceInput at) {
      if (!at.foreign)
        at.removable = removable_cache_entry(at.cache_entry.empty() ? extension_folder(at) : at.cache_entry);
      return given != nullptr ? given->of(std::move(at)) : advise_on(at);
    };
    Advice advice = asked(*finding.about);
    for (const auto& other : finding.about_others) add_other_gpu(asked(*other), advice);
    if (finding.about->foreign) foreign.take_out_of(advice.fixes);
    finding.fixes = std::move(advice.fixes);
    if (!finding.fixes.empty() && !finding.fixes.front().assumed.empty())
      finding.confidence = std::min(finding.confidence, kMostIfAssumed);
    finding.dead_ends = std::move(advice.dead_ends);
    finding.remarks.insert(finding.remarks.begin(), std::make_move_iterator(advice.remarks.begin()),
                           std::make_move_iterator(advice.remarks.end()));
    const bool harms = finding.severity != Severity::info || finding.cause == Cause::jit_tax;
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
        return {&finding, fix, finding.about->python_env.prefix};
  return {};
}

// Whether the build serves what the other finding is about.
bool serves(const Fix& fix, const AdviceInput& at) {
  if (!at.device) return false;
  const WheelRow* row =
      find_wheel(argument(fix, "package"), argument(fix, "release"), argument(fix, "variant"));
  return row != nullptr && serves(*row, *at.device) != image::Choice::none;
}

bool is_needless(const PrimaryFix& leading, const AdviceInput& at, const Fix& fix) {
  const std::string_view package = argument(fix, "package");
  if (package.empty() || at.python_env.prefix != leading.prefix) return false;
  if (comes_with_torch(package)) return true;
  return is_of_torch(package) && fix.arguments != leading.fix.arguments && serves(leading.fix, at);
}

// If any finding recommends a driver update, no finding may list it under "Will not help".
void drop_driver_dead_ends(std::vector<Finding>& findings) {
  const bool asked = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return std::any_of(finding.fixes.begin(), finding.fixes.end(),
                       [](const Fix& fix) { return fix.kind == FixKind::upgrade_driver; });
  });
  if (!asked) return;
  for (Finding& finding : findings)
    std::erase_if(finding.dead_ends, [](const DeadEnd& row) { return row.of_driver; });
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

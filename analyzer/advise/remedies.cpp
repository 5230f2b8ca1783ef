// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/remedies.h"

#include <cctype>

#include "analyzer/advise/commands.h"
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/text.h"
#include "analyzer/owner/distributions.h"

namespace kshim::advise {
using core::Cause;
using core::shell_quote;
using core::TemplateWords;
using data::ArchList;
using data::ToolkitRow;
using diagnose::Facts;
using say::Run;

namespace {

using Remedy = data::MessageFixRow;

// "libcudart.so.12", "cudnn_ops64_9.dll": 12 and 9, CUDA's for the libraries that have its number.
std::string major_of_library(std::string_view file) {
  for (const std::string_view mark : {".so.", "64_"}) {
    const std::size_t at = file.find(mark);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = file.substr(at + mark.size());
    return std::string(rest.substr(0, rest.find('.')));
  }
  return "N";
}

// What a list is to have: the GPU, else the newest that the CUDA of the log builds for; of no known CUDA,
// what all of its releases since 11.1 build.
std::optional<say::BuildPlan> list_plan(const Facts& at) {
  const ToolkitRow* named = data::toolkit_at_most(at.images.toolkit);
  // A builder that does not know an architecture: what all since PyTorch 1.7 know.
  const bool refused = at.call.message == "torch_arch_word";
  const ToolkitRow* last = at.gpu.cc ? last_with_code_for(*at.gpu.cc) : nullptr;
  const ToolkitRow* toolkit = refused            ? data::toolkit_at_most({11, 0})
                              : named != nullptr ? named
                              : last != nullptr  ? last
                                                 : data::toolkit_at_most({11, 1});
  if (toolkit == nullptr) return std::nullopt;
  if (at.gpu.cc)
    if (auto plan = plan_build({}, *at.gpu.cc, *toolkit, {})) return plan;
  std::vector<image::Candidate> common;
  for (const image::ComputeCapability cc :
       {image::ComputeCapability{7, 5}, {8, 0}, {8, 6}, {8, 9}, {9, 0}, {12, 0}})
    if (builds_for(*toolkit, {cc, image::Suffix::none}))
      common.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  if (common.empty()) return std::nullopt;
  return plan_build(common, common.back().arch.cc, *toolkit, {});
}

std::string list_of(const Facts& at, ArchList style) {
  const auto plan = list_plan(at);
  return plan ? arch_list(*plan, style) : style == ArchList::torch ? "X.Y" : "XY";
}

// Of NVIDIA's packages: of the program, else what the driver runs; no newer one than builds for the GPU. From
// 13 on, most names have no number.
unsigned cuda_major(const Facts& at) {
  const unsigned major = at.images.toolkit.known() ? at.images.toolkit.major
                         : at.driver.cuda.known()  ? at.driver.cuda.major
                                                   : 12;
  unsigned newest = 0;
  for (const ToolkitRow& row : data::toolkits())
    if (!at.gpu.cc || builds_for(row, {*at.gpu.cc, image::Suffix::none}))
      newest = std::max<unsigned>(newest, row.version.major);
  return std::clamp(major, 11U, std::clamp(newest, 11U, at.images.toolkit.known() ? 13U : 12U));
}

// "below 5.0", "from 5.0", "below message" (what it asks for), "unknown"; empty: of all.
bool is_of_gpu(std::string_view gpus, const Facts& at) {
  if (gpus.empty() || !at.gpu.cc) return gpus.empty() || gpus == "unknown";
  const std::string_view number = gpus.substr(gpus.find(' ') + 1);
  const auto needs = at.call.said.find("needs");
  if (number == "message" && needs == at.call.said.end()) return false;
  const auto limit = image::parse_arch(number == "message" ? std::string_view(needs->second) : number);
  return limit && (*at.gpu.cc < limit->cc) == gpus.starts_with("below");
}

// "12", "below 12.4", "from 13.0"; empty: of all.
bool is_of_cuda(std::string_view cuda, const Facts& at) {
  const image::Version& toolkit = at.images.toolkit;
  const std::size_t blank = cuda.find(' ');
  if (cuda.empty() || blank == std::string_view::npos)
    return cuda.empty() || cuda == std::to_string(toolkit.major);
  const auto limit = image::parse_version(cuda.substr(blank + 1));
  return toolkit.known() && limit && (toolkit < *limit) == cuda.starts_with("below");
}

// What pip is to be given: the distribution that a file is of, else the name under which an index has the
// build of the software for the GPU. Empty where none is known to have it, or where nothing shows a Python
// package.
std::string pip_word(const Facts& at) {
  if (at.file.origin == diagnose::Origin::installed && at.package.manager == "pip" && !at.file.path.empty())
    return shell_quote(at.package.name.shown());
  if (!at.process.python && at.package.manager != "pip" && at.package.variant.empty()) return {};
  const data::ProjectName said =
      !at.package.name.empty() ? at.package.name : data::ProjectName(at.package.software);
  for (const data::SoftwareRow& row : data::software())
    if (!said.empty() && said == row.package) return row.pip.empty() ? std::string() : shell_quote(row.pip);
  return {};
}

// nullopt for a row that is about a GPU of another kind, or asks which one it is where that is known.
std::optional<FixDraft> fix_of(const Remedy& row, const Facts& at) {
  const std::optional<image::ComputeCapability>& device = at.gpu.cc;
  const bool about_one = core::asks_for(row.title, "sm");
  // The program at work has its own switches, whichever package failed within.
  const bool of_program = core::to_lower(at.package.project).starts_with(row.package) ||
                          core::to_lower(at.package.around).starts_with(row.package);
  const bool of_other = !row.package.empty() && row.package != at.package.software && !of_program;
  if (!is_of_gpu(row.gpu, at) || !is_of_cuda(row.cuda, at) || of_other || !is_shown(row.when, at))
    return std::nullopt;
  if (about_one && (!device || data::first_toolkit_for({*device, image::Suffix::a}) == nullptr))
    return std::nullopt;
  const std::string& package = !at.package.name.empty()       ? at.package.name.shown()
                               : !at.package.software.empty() ? at.package.software
                                                              : at.call.extension;
  const std::string pip = pip_word(at);
  TemplateWords words = {{"package", shell_quote(package)},
                         {"pip", pip},
                         {"major", major_of_library(at.file.path)},
                         {"torch_list", list_of(at, ArchList::torch)},
                         {"cmake_list", list_of(at, ArchList::numbers)},
                         {"torch_index", torch_index(at)},
                         {"library", shell_quote(at.file.path)},
                         {"gpu_cuda", name(newest_cuda_for(at))},
                         {"cu", fmt::format("{}", cuda_major(at))},
                         {"-cu", cuda_major(at) < 13 ? fmt::format("-cu{}", cuda_major(at)) : std::string()}};
  if (device)
    words.insert(words.end(),
                 {{"sm", fmt::format("{}{}", device->major, device->minor)}, {"cc", name(*device)}});
  if (core::contains(pip, '[')) words.emplace_back("pip_extra", pip);
  for (const auto& [word, text] : at.call.said) words.emplace_back(word, text);
  // CUDA's libraries come as an extra (ctk) from this major version on.
  constexpr unsigned kFirstWithExtra = 12;
  const auto asked = at.call.said.find("library_cuda");
  if (const unsigned cuda = asked != at.call.said.end()
                                ? core::first_number<unsigned>(asked->second).value_or(0)
                                : at.images.toolkit.major;
      cuda != 0 && at.call.said.contains("library_major"))
    words.emplace_back(cuda < kFirstWithExtra ? "no_ctk_major" : "ctk_major", std::to_string(cuda));
  if (has_gap(row.title, words) || has_gap(row.command, words)) return std::nullopt;
  FixDraft fix = fix_of_row(row, row.message.substr(0, row.message.find(' ')), words);
  if (fix.title.empty()) return std::nullopt;
  const Run* configures =
      fix.steps.empty() ? nullptr : std::get_if<Run>(&fix.steps.front().steps.front().action);
  if (configures != nullptr && configures->program == "cmake" && !at.package.build_system.empty() &&
      at.package.build_system != "cmake")
    fix.steps.clear();
  return fix;
}

// Of the row of this message, else of the family that its id begins with.
bool is_for(const Remedy& row, std::string_view message) {
  constexpr std::string_view kFamily = "of_all_";
  if (!row.message.starts_with(kFamily))
    return core::contains(core::split(std::string(row.message), " "), message);
  // What is known of a package goes before what is said of a message.
  const bool has_own =
      row.package.empty() &&
      std::ranges::any_of(data::message_fixes(), [&](const Remedy& own) { return own.message == message; });
  return !has_own && message.starts_with(std::string(row.message.substr(kFamily.size())) + '_');
}

// What asks for a library of one CUDA, beside a PyTorch of another: PyTorch's build of that release for the
// CUDA that is asked for, where the driver runs one.
std::optional<FixDraft> one_cuda_for_both(const Facts& at, TemplateWords words) {
  const std::string release = at.package.torch_build.substr(0, at.package.torch_build.find('+'));
  const data::WheelRow* chosen = nullptr;
  const std::string_view platform = at.package.platform.empty() ? data::kLinux : at.package.platform;
  for (const data::WheelRow& row : data::wheels())
    if (row.distribution == "torch" && row.platform == platform &&
        data::is_within(release, row.first, row.last) &&
        row.variant.starts_with("cu" + at.call.said.at("library_cuda")) &&
        data::can_run(at.gpu.cc, at.driver.cuda, cuda_of(row.variant)) &&
        (chosen == nullptr || cuda_of(chosen->variant) < cuda_of(row.variant)))
      chosen = &row;
  if (release.empty() || chosen == nullptr) return std::nullopt;
  words.insert(words.end(), {{"torch_version", release}, {"index", std::string(chosen->variant)}});
  return advise::fix_of("one-cuda-for-both", words);
}

// The published build of what asks for it, for the CUDA that is there.
std::optional<FixDraft> build_for(const Facts& at, unsigned cuda, TemplateWords words) {
  const data::WheelName wheel = wheel_of(at);
  const data::InstallerRow* installer = data::find_installer(wheel.distribution, "pip", wheel.version);
  const std::string_view platform = at.package.platform.empty() ? data::kLinux : at.package.platform;
  const data::WheelRow* chosen = nullptr;
  for (const data::WheelRow& row : data::wheels())
    if (row.distribution == wheel.distribution && row.platform == platform &&
        cuda_of(row.variant).major == cuda &&
        (chosen == nullptr || !data::is_within(wheel.version, chosen->first, chosen->last)))
      chosen = &row;
  if (installer == nullptr || chosen == nullptr) return std::nullopt;
  words.insert(words.end(), {{"variant", std::string(chosen->variant)},
                             {"major", std::to_string(cuda)},
                             {"pin", {}},
                             {"installed", words.front().second}});
  FixDraft fix = advise::fix_of("update-asking-program", words);
  const bool has_variant =
      core::asks_for(installer->command, "variant") || core::asks_for(installer->command, "major");
  if (has_variant && !core::asks_for(installer->command, "packages"))
    fix.steps = commands_of(installer->command, words);
  return fix;
}

bool installs(const FixDraft& fix) {
  return fix.kind == core::FixKind::reinstall || fix.kind == core::FixKind::downgrade;
}

}  // namespace

bool has_gap(std::string_view text, const TemplateWords& words) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find_first_not_of(kLetters, at + 1);
    if (end == std::string_view::npos || end == at + 1 || (text[end] != '}' && text[end] != '?')) continue;
    const std::string_view word = text.substr(at + 1, end - at - 1);
    if (std::ranges::find(words, word, &TemplateWords::value_type::first) == words.end()) return true;
  }
  return false;
}

image::Version newest_cuda_for(const Facts& at) {
  image::Version out;
  for (const ToolkitRow& row : data::toolkits())
    if (at.gpu.cc && builds_for(row, {*at.gpu.cc, image::Suffix::none}) &&
        data::can_run(at.gpu.cc, at.driver.cuda, row.version))
      out = row.version;
  return out;
}

std::string torch_index(const Facts& at) {
  data::WheelName torch;
  torch.distribution = "torch";
  constexpr image::Version kOfToday{12, 0};
  const image::Version driver = likely_driver(at).known() ? likely_driver(at) : kOfToday;
  if (at.gpu.cc)
    if (const auto choice = choose_wheel(at, torch, driver, {}, "pip"))
      return std::string(choice->row->variant);
  return at.driver.cuda.known() && at.driver.cuda.major < 12 ? "cu118" : "cu128";
}

std::string_view title_of_message(std::string_view message, const Facts& at) {
  TemplateWords words = {{"gpu", {}}, {"file", {}}, {"owner", {}}};
  for (const auto& [word, text] : at.call.said) words.emplace_back(word, text);
  for (const data::MessageTitleRow& row : data::message_titles())
    if (row.message == message && !has_gap(row.title, words)) return row.title;
  return {};
}

Remedies remedies_of(const Facts& at) {
  Remedies out;
  if (at.call.message.empty()) return out;
  for (const Remedy& row : data::message_fixes()) {
    if (!is_for(row, at.call.message)) continue;
    auto fix = fix_of(row, at);
    if (!fix) continue;
    const bool for_all = row.package.empty() && row.when.empty() && row.cuda.empty();
    if (out.of_package.empty() || !for_all) out.rest = row.rest;
    out.for_gpu = out.for_gpu || core::asks_for(row.title, "sm");
    (for_all ? out.others : out.of_package).push_back(std::move(*fix));
  }
  if (out.alone() && !out.of_package.empty()) out.others.clear();
  return out;
}

void add_remedies(Remedies remedies, AdviceDraft& advice) {
  FixDrafts& fixes = advice.fixes;
  const bool releases = remedies.rest == data::Rest::releases;
  // A row for this very GPU makes the one that asks which it is needless; so does a release that is named.
  if (releases ? std::ranges::any_of(fixes, installs) : remedies.for_gpu)
    std::erase_if(remedies.others, [](const FixDraft& fix) {
      return std::ranges::any_of(steps_of<Run>(fix), &Run::asks_for_gpu);
    });
  if (releases) {
    advice.dead_ends.clear();
    advice.remarks.clear();
    std::erase_if(fixes, [](const FixDraft& fix) { return !installs(fix); });
  }
  const auto where = releases ? fixes.end()
                     : remedies.rest == data::Rest::last
                         ? std::ranges::find(fixes, core::FixKind::fallback, &FixDraft::kind)
                         : fixes.begin();
  fixes.insert(where, std::make_move_iterator(remedies.others.begin()),
               std::make_move_iterator(remedies.others.end()));
  fixes.insert(fixes.begin(), std::make_move_iterator(remedies.of_package.begin()),
               std::make_move_iterator(remedies.of_package.end()));
}

void add_by_listing(const Facts& at, FixDrafts& fixes) {
  TemplateWords words = {
      {"package", shell_quote(at.package.name.empty() ? at.call.extension : at.package.name.shown())}};
  for (const auto& [word, text] : at.call.said) words.emplace_back(word, text);
  const auto put_first = [&](FixDraft fix) { fixes.insert(fixes.begin(), std::move(fix)); };
  const auto said = [&](const char* word) { return at.call.said.contains(word); };
  const std::string pip = pip_word(at);
  words.emplace_back("pip", pip.empty() ? words.front().second : pip);
  words.emplace_back("library", std::string(core::basename_of(at.file.path)));
  const bool python = !is_shown("not-python", at);
  const bool named = python && (!at.package.name.empty() || !at.call.extension.empty());
  // Its wheels come with packages of NVIDIA's, and pip may have left one out.
  const bool brought = at.process.python && (at.package.software == "torch" || at.package.software == "jax");
  const bool has_own = std::ranges::any_of(data::message_fixes(), [&](const Remedy& row) {
    return row.message == at.call.message && !row.package.empty() && row.package == at.package.software &&
           is_of_cuda(row.cuda, at);
  });
  const bool in_python = at.process.python || at.process.python_env.known();
  const bool plain = at.call.message == "ld_missing" || at.call.message == "cudnn_load";
  const std::string wheel = said("library_wheel") ? at.call.said.at("library_wheel") : std::string();
  const std::size_t name = std::min(wheel.find_first_of("<>=!~"), wheel.size());
  const auto own_wheel = at.process.installed.find(wheel.substr(0, name));
  const bool there =
      own_wheel != at.process.installed.end() &&
      (name == wheel.size() || !owner::exclude_each_other(wheel.substr(name), "==" + own_wheel->second));
  // A Jetson's libraries are JetPack's: those of pip are for other boards.
  const bool wheels = python && (in_python || there) && !is_shown("jetson", at) && !said("old_jax");
  if (at.cause == Cause::library_not_found && said("library_wheel") && wheels &&
      (brought || there || (plain && !has_own && !core::contains(pip, '[')))) {
    FixDraft fix = fix_of(there ? "load-installed-library" : "install-library-wheel", words);
    // PyTorch, TensorFlow and JAX look there by themselves.
    if (const std::string& site = at.process.python_env.site; !site.empty() && !brought)
      fix.steps.push_back(say::command_of(
          "export LD_LIBRARY_PATH={folder}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
          {{"folder", shell_quote(fmt::format("{}/{}", site, at.call.said.at("library_folder")))}}));
    else if (!there && !brought)
      fix.steps.push_back(std::move(fix_of("load-installed-library", words).steps.front()));
    put_first(std::move(fix));
    // To install what asks for it again brings no library that its metadata does not name.
    std::erase_if(fixes,
                  [](const FixDraft& each) { return each.id == "ld_missing" || each.id == "cudnn_load"; });
  }
  const bool of_cuda = said("library_cuda");
  if (at.cause == Cause::library_not_found && said("newer_there") && named && !of_cuda)
    put_first(fix_of("update-for-library", words));
  const char* const other = said("newer_there") ? "newer_there" : "older_there";
  // A row for the CUDA that is there says it already.
  const bool of_this_cuda = std::ranges::any_of(data::message_fixes(), [&](const Remedy& row) {
    return !row.cuda.empty() && is_for(row, at.call.message) && is_of_cuda(row.cuda, at) &&
           (row.package.empty() || row.package == at.package.software);
  });
  if (at.cause == Cause::library_not_found && said(other) && python && of_cuda && !of_this_cuda) {
    words.emplace_back("asking", named ? words.front().second : "the program");
    words.emplace_back("there", at.call.said.at(other));
    const bool of_torch = words.front().second == "torch";
    // What asks for the library is exchanged, by its own index before all; PyTorch where that cannot be.
    FixDrafts ways;
    if (!of_torch) add_other_ways(at, ways);
    if (ways.empty())
      if (auto build = build_for(at, core::first_number<unsigned>(at.call.said.at(other)).value_or(0), words))
        ways.push_back(std::move(*build));
    const bool known = !ways.empty();
    auto both = of_torch ? std::nullopt : one_cuda_for_both(at, words);
    // A program asks for one release of PyTorch, and is published for one CUDA.
    const bool of_program = std::ranges::any_of(data::software(), [&](const data::SoftwareRow& row) {
      return row.package == at.package.software && row.use == "program";
    });
    if (!known && both && of_program) ways.push_back(*std::exchange(both, std::nullopt));
    if (!known) ways.push_back(fix_of("update-asking-program", words));
    if (both) ways.push_back(std::move(*both));
    // What a message's own row installs brings the libraries along.
    const bool installs_them = !fixes.empty() && !steps_of<say::Install>(fixes.front()).empty();
    fixes.insert(fixes.begin() + (installs_them && !known ? 1 : 0), std::make_move_iterator(ways.begin()),
                 std::make_move_iterator(ways.end()));
  }
  if (at.cause == Cause::library_not_found && said("folder")) put_first(fix_of("name-library-folder", words));
  if (at.cause == Cause::mixed_cuda_libraries && said("remove"))
    put_first(fix_of("remove-other-cuda", words));
  if (at.cause == Cause::driver_mismatch && said("releases") && is_shown("restarted", at))
    put_first(fix_of("one-driver-release", words));
}

// Windows loads no shim, and has no kshim of its own.
void add_next_of_windows(const input::LogFacts& clues, bool images, Cause cause, std::vector<NextStep>& out) {
  if (images && find_package(clues, "torch") != nullptr)
    out.push_back({R"py(python -c "import torch; print(torch.__version__, torch.cuda.get_arch_list())")py",
                   "lists what PyTorch has code for: where the GPU is among it, another package has none"});
  if (images && is_image_cause(cause))
    out.push_back({"cuobjdump --list-elf --list-ptx FILE.dll",
                   "lists what a file has code for; a part of the CUDA toolkit"});
  if (out.empty() || clues.devices.empty() || !clues.driver.known())
    out.push_back({"nvidia-smi", "says which GPU and driver this machine has"});
}

std::vector<NextStep> next_steps(const input::LogFacts& clues, const diagnose::Judgment& judgment) {
  // Nothing of the program has run yet.
  if (judgment.hit != nullptr && judgment.hit->id == "build_line")
    return {{"nvcc --version && c++ --version",
             "names the CUDA and the compiler of the build: the source has to be of a release for them"}};
  std::vector<NextStep> out;
  const Cause cause = judgment.suspect.cause;
  const bool images = is_image_cause(cause) || cause == Cause::unknown || cause == Cause::unchecked_failure ||
                      cause == Cause::stale_error || cause == Cause::compiled_out;
  if (clues.of_windows()) {
    add_next_of_windows(clues, images, cause, out);
    return out;
  }
  const char* program = clues.has("python") ? "python PROGRAM.py" : "PROGRAM";
  const bool nccl =
      std::ranges::any_of(clues.hits, [](const input::LogMatch& hit) { return hit.id == "nccl_unhandled"; });
  if (nccl) out.push_back({fmt::format("NCCL_DEBUG=WARN {}", program), "NCCL then says which error it met"});
  if (images) {
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the file, the kernel and the line that failed, and what the file holds"});
  }
  if (images && clues.lists.empty()) {
    const std::string gpu =
        judgment.facts.gpu.cc ? fmt::format(" --target {}", name(*judgment.facts.gpu.cc)) : std::string();
    out.push_back({fmt::format("kshim scan{} {}", gpu, clues.has("python") ? "VENV_OR_WHEEL" : "FILE"),
                   "lists what a file, a wheel or an environment has code for, without running it"});
  }
  if (!judgment.facts.gpu.cc || !clues.driver.known()) {
    out.push_back(
        {"kshim doctor",
         "says which GPU and driver this machine has, and which CUDA libraries a program would load"});
  }
  if (cause == Cause::nvrtc_arch_unsupported)
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the compiler library that was loaded, and what it knows"});
  return out;
}

}  // namespace kshim::advise

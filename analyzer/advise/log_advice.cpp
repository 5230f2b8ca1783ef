// SPDX-License-Identifier: Apache-2.0
// What to do, from what a log tells: the same advice as for reports, on thinner ground.
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/advice.h"
#include "analyzer/advise/remedies.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/advise/windows.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/log_diagnosis.h"
#include "analyzer/diagnose/rules.h"

namespace kshim::explain {
namespace {

using analysis::Cause;
using analysis::Situation;

std::string group(const Hit& hit, const char* key) {
  const auto found = hit.groups.find(key);
  return found == hit.groups.end() ? std::string() : found->second;
}

// What refused, and what it was asked for.
void set_compiler(const Clues& clues, const Hit& hit, Situation& at) {
  at.compiler = group(hit, "tool");
  if (at.compiler.empty() || at.compiler == "nvrtc") at.compiler = hit.who.empty() ? "the compiler" : hit.who;
  if (const auto asked = image::parse_arch(group(hit, "asked"))) {
    at.asked = *asked;
  } else if (at.device) {
    at.asked = {*at.device, image::Suffix::none};
  }
  at.compiler_version = clues.toolkit;
}

image::Version version_of(const std::string& text) {
  return image::parse_version(text).value_or(image::Version{});
}

// "Unsupported .version 8.5; current version is '8.2'" need not be the line that decides.
void set_ptx(const Clues& clues, Situation& at) {
  for (const Hit& hit : clues.hits) {
    if (group(hit, "ptx").empty() || group(hit, "reads").empty()) continue;
    at.ptx = version_of(group(hit, "ptx"));
    at.reads = version_of(group(hit, "reads"));
    return;
  }
}

// What is built on PyTorch and lacks the code in this release: another PyTorch would leave it so.
const PackageClue* lacking_extension(const Clues& clues, const Situation& at) {
  for (const PackageClue& each : clues.packages) {
    if (each.name != "torch" && !each.from_source &&
        analysis::is_without_code(each.name, each.version, *at.device, analysis::platform_of(at)))
      return &each;
  }
  return nullptr;
}

// What the runtime is, or what a container's image demands.
void set_runtime(const Hit* hit, Situation& at) {
  const image::Version asked = hit != nullptr ? version_of(group(*hit, "needcuda")) : image::Version{};
  at.asks_for_cuda = asked.known();
  at.runtime = asked.known() ? asked : at.toolkit;
}

}  // namespace

void add_advice(const Clues& clues, const Judgement& judgement, analysis::Finding& finding) {
  Situation at;
  at.cause = finding.cause;
  at.code = finding.code;
  at.object = finding.object;
  at.device = judgement.facts.device;
  if (judgement.device != nullptr) at.device_name = judgement.device->name;
  at.driver = clues.driver;
  at.kernel_module = clues.kernel_module;
  at.toolkit = clues.toolkit;
  at.toolkit_how = clues.toolkit_assumed ? "as --assume-toolkit says" : "it stands in the log";
  for (const analysis::ImageFact& image : judgement.facts.images) at.have.push_back(image.candidate);
  at.python = clues.python;
  at.torch = find_package(clues, "torch") != nullptr;
  at.links_torch = at.torch;
  at.platform = clues.windows ? "windows x86_64" : "";
  at.build_system = clues.build_system;
  // A file of its own that was looked at is not PyTorch's.
  const PackageClue* package = package_that_failed(clues, judgement.hit);
  const bool another = package != nullptr && package->name == "torch" && judgement.list != nullptr &&
                       !judgement.list->by_itself && judgement.list->owner.find("torch") == std::string::npos;
  if (package != nullptr && package->name == "torch" && at.device) {
    if (const PackageClue* extension = lacking_extension(clues, at)) package = extension;
  }
  if (package != nullptr && !another) {
    at.software = package->name;
    at.from_source = package->from_source;
    at.package_version = package->version;
    at.variant = package->variant;
    if ((clues.python || !package->variant.empty()) && !package->from_source) {
      at.package = package->known_as();
      at.origin = analysis::Origin::installed;
    }
  }
  // What compiles at run time makes PTX of its own compiler's version.
  if (clues.run_time_compiler && finding.cause == Cause::ptx_newer_than_driver)
    at.origin = analysis::Origin::memory;
  at.links_torch = at.torch;
  for (const analysis::SwitchRow& row : analysis::switches()) {
    const auto set = clues.env.find(std::string(row.variable));
    if (set != clues.env.end() && !set->second.empty() && set->second != "0")
      at.switches.emplace_back(row.variable);
  }
  // What says so itself is what was asked: cuDNN, where its status is the message.
  if (const Hit* message = message_behind(clues, judgement);
      message != nullptr && finding.cause == Cause::cudnn_mismatch && message->who == "cuDNN")
    at.software = "cuDNN";
  if (finding.cause == Cause::nvrtc_arch_unsupported && judgement.hit != nullptr)
    set_compiler(clues, *judgement.hit, at);
  if (finding.cause == Cause::ptx_newer_than_driver) set_ptx(clues, at);
  if (finding.cause == Cause::driver_too_old) set_runtime(judgement.hit, at);
  analysis::Advice advice = analysis::advise(at);
  finding.fixes = std::move(advice.fixes);
  finding.dead_ends = std::move(advice.dead_ends);
  finding.remarks = std::move(advice.remarks);
  add_remedies(clues, judgement, finding);
  if (clues.of_windows()) translate(finding);
}

std::vector<NextStep> next_steps(const Clues& clues, const Judgement& judgement) {
  std::vector<NextStep> out;
  const Cause cause = judgement.suspect.cause;
  const bool images = analysis::is_image_cause(cause) || cause == Cause::unknown ||
                      cause == Cause::unchecked_failure || cause == Cause::stale_error ||
                      cause == Cause::compiled_out;
  const char* program = clues.python ? "python PROGRAM.py" : "PROGRAM";
  if (images) {
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the file, the kernel and the line that failed, and what the file holds"});
  }
  if (images && clues.lists.empty()) {
    const std::string gpu = judgement.facts.device
                                ? fmt::format(" --target {}", image::to_name(*judgement.facts.device).view())
                                : std::string();
    out.push_back({fmt::format("kshim scan{} {}", gpu, clues.python ? "VENV_OR_WHEEL" : "FILE"),
                   "lists what a file, a wheel or an environment has code for, without running it"});
  }
  if (!judgement.facts.device || !clues.driver.known()) {
    out.push_back(
        {"kshim doctor",
         "says which GPU and driver this machine has, and which CUDA libraries a program would load"});
  }
  const bool nccl = std::any_of(clues.hits.begin(), clues.hits.end(),
                                [](const Hit& hit) { return hit.id == "nccl_unhandled"; });
  if (nccl) out.push_back({fmt::format("NCCL_DEBUG=INFO {}", program), "NCCL then says which error it met"});
  if (cause == Cause::nvrtc_arch_unsupported)
    out.push_back({fmt::format("kshim run -- {}", program),
                   "names the compiler library that was loaded, and what it knows"});
  return out;
}

}  // namespace kshim::explain

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/log_finding.h"

#include "analyzer/advise/remedies.h"
#include "analyzer/core/text.h"
#include "analyzer/data/frames.h"
#include "analyzer/data/knowledge.h"
#include "analyzer/diagnose/failure_finding.h"

namespace kshim::verbs {
using core::Cause;
using core::EvidenceId;
using core::Finding;
using input::LogMatch;

core::Device device_of(const input::DeviceMention& clue) {
  return {.kind = core::Device::Kind::named, .name = clue.name, .cc = clue.cc};
}

const char* name_of(const CudaError& error) {
  return error.driver_name != nullptr ? error.driver_name : error.runtime_name;
}

namespace {

// Images and GPU of the judgment, as findings of reports have them.
void describe(const diagnose::Judgment& judgment, Finding& finding) {
  const Cause cause = finding.cause;
  if (judgment.device != nullptr) finding.devices.push_back(device_of(*judgment.device));
  if (!is_image_cause(cause) && cause != Cause::unknown && cause != Cause::stale_error) return;
  describe_images(judgment.facts, finding);
  if (!judgment.facts.gpu.cc) finding.images.clear();
  if (judgment.facts.gpu.cc && has_trait(cause, core::cause_trait::needs_arch))
    finding.need = sm_name(*judgment.facts.gpu.cc);
  // A project that says what it was built for is no file.
  const bool of_project =
      judgment.list != nullptr && std::ranges::find(data::software(), judgment.list->owner,
                                                    &data::SoftwareRow::package) != data::software().end();
  if (judgment.list != nullptr && !of_project) finding.object = judgment.list->owner;
}

// The user's own line: the innermost frame outside of what is installed.
void add_place(const std::vector<core::Place>& frames, Finding& finding) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (data::owner_of_python(frame->file, frame->function) != data::FrameOwner::user) continue;
    finding.where.push_back(*frame);
    return;
  }
}

// An assertion is printed before the traceback of the call that reports it.
const std::vector<core::Place>& frames_of(const input::LogFacts& clues, const LogMatch& decider) {
  if (!decider.frames.empty() || decider.code == 0) return decider.frames;
  const auto later = std::ranges::find_if(clues.hits, [&](const LogMatch& hit) {
    return hit.line > decider.line && hit.code == decider.code && !hit.frames.empty();
  });
  return later == clues.hits.end() ? decider.frames : later->frames;
}

// A number that stands for many causes.
std::string unexplained(int code) {
  const CudaError* error = find_cuda_error(code);
  return error == nullptr
             ? fmt::format("error {} by itself does not say why", code)
             : fmt::format("\"{}\" (CUDA error {}) by itself does not say why", error->message, code);
}

// Empty where what is said of all of its cause will do.
std::string headline_of(const input::LogFacts& clues, const diagnose::Judgment& judgment) {
  const Cause cause = judgment.suspect.cause;
  const int code = judgment.facts.call.codes.empty() ? 0 : judgment.facts.call.codes.front();
  constexpr int kInvalidPtx = 218;
  if (cause == Cause::invalid_image && code == kInvalidPtx)
    return "the driver's compiler refuses the PTX of {file}";
  if (cause == Cause::out_of_memory && clues.has("pinned"))
    return std::string(advise::title_of_message("host_pinned", judgment.facts));
  const input::GpuMemory& memory = clues.memory;
  if (cause == Cause::out_of_memory && memory.known() && memory.had_room())
    return fmt::format("an allocation of {} failed, although the GPU has {} free",
                       diagnose::memory_text(memory.asked), diagnose::memory_text(memory.free));
  if (const std::string_view of_code = diagnose::headline_of_code(code, cause); !of_code.empty())
    return std::string(of_code);
  if (cause == Cause::unknown && !judgment.facts.call.codes.empty())
    return unexplained(judgment.facts.call.codes.front());
  return {};
}

}  // namespace

Finding log_finding(const input::LogFacts& clues, const diagnose::Judgment& judgment,
                    const std::string& log) {
  const diagnose::CauseCandidate& suspect = judgment.suspect;
  Finding finding;
  finding.cause = suspect.cause;
  const core::CauseRow& row = row_of(finding.cause);
  finding.severity = judgment.hit == nullptr ? core::Severity::warning : row.severity;
  finding.headline = headline_of(clues, judgment);
  finding.confidence = std::clamp(suspect.confidence, 0.0, 0.98);
  if (finding.cause == Cause::unchecked_failure) finding.confidence = std::min(finding.confidence, 0.6);
  if (!judgment.facts.call.codes.empty()) {
    finding.code = judgment.facts.call.codes.front();
    if (const CudaError* error = find_cuda_error(*finding.code)) finding.code_name = name_of(*error);
  }
  describe(judgment, finding);
  const LogMatch* hit = judgment.hit;
  if (hit != nullptr && finding.object.empty() &&
      (finding.cause == Cause::library_not_found || finding.cause == Cause::jit_compiler_missing)) {
    const auto lib = hit->groups.find("lib");
    if (lib != hit->groups.end()) finding.object = lib->second;
  }
  const std::uint64_t line = hit != nullptr ? hit->line : 0;
  const core::ReportLine at = log.empty() || line == 0 ? core::ReportLine{} : core::ReportLine{log, line};
  if (hit != nullptr)
    finding.evidence.push_back(
        {EvidenceId::deciding_line, "The line that decides: " + hit->quote, at, {{"line", hit->quote}}});
  if (!suspect.because.empty())
    finding.evidence.push_back({EvidenceId::rule, core::as_sentence(suspect.because), at});
  if (judgment.earlier)
    finding.evidence.push_back(
        {EvidenceId::earlier_warning, "An earlier warning: " + judgment.earlier->because, {}});
  for (const diagnose::CauseCandidate& other : judgment.others)
    finding.evidence.push_back({EvidenceId::later_line, "A later line also fails: " + other.because, {}});
  if (const std::uint64_t cpu = hit != nullptr ? on_cpu_after(clues.course, *hit) : 0; cpu != 0)
    finding.evidence.push_back(
        {EvidenceId::on_cpu,
         fmt::format("The program goes on without the GPU, on the CPU (line {}).", cpu),
         {},
         {{"line", std::to_string(cpu)}}});
  if (!judgment.went_on.empty()) {
    finding.severity = std::min(finding.severity, core::Severity::warning);
    finding.evidence.push_back({EvidenceId::went_on, core::as_sentence(judgment.went_on), {}});
  } else if (hit != nullptr && (hit->thrown || !judgment.others.empty()) &&
             finding.cause == Cause::compiled_out) {
    // The program failed visibly, so this is an error rather than a silent wrong result.
    finding.severity = core::Severity::error;
  }
  // Its driver's own lines stand above or below.
  for (const LogMatch& each : clues.hits)
    if (std::string kernel = group(each, "kernel");
        !kernel.empty() && finding.failed_kernel.empty() && is_image_cause(finding.cause))
      finding.failed_kernel = core::demangle(kernel);
  if (hit != nullptr) add_place(frames_of(clues, *hit), finding);
  finding.about = facts_about(clues, judgment, finding);
  if (const std::string_view own = advise::title_of_message(finding.about->call.message, *finding.about);
      !own.empty())
    finding.headline = own;
  if (finding.headline.empty() && finding.cause == Cause::library_not_found && !finding.object.empty()) {
    const auto& package = finding.about->package;
    const bool named = !package.software.empty() || !package.project.empty();
    finding.headline =
        fmt::format("{} is missing{}", core::basename_of(finding.object), named ? " for {owner}" : "");
  }
  if (finding.headline.empty() && finding.cause == Cause::nvrtc_arch_unsupported &&
      finding.about->call.compiler) {
    const diagnose::Facts& about = *finding.about;
    const image::Arch asked = about.call.compiler->asked;
    const bool named = !about.package.software.empty() || !about.package.project.empty();
    const std::string target = asked.cc.major != 0 ? sm_name(asked) : about.gpu.cc ? "{gpu}" : "";
    // Triton brings its own, whatever toolkit is there.
    const bool of_triton =
        clues.has("triton-jit") || (hit != nullptr && hit->who == "LLVM" && about.process.torch);
    if (!target.empty())
      finding.headline = fmt::format("{}{} does not compile for {}",
                                     of_triton ? "Triton's "
                                     : named   ? "{owner}: "
                                               : "",
                                     about.call.compiler->name, target);
  }
  // Whose kernel it is; a framework starts what its caller asks for.
  const auto& whose = finding.about->package;
  const bool owned = whose.software.empty() ? whose.released && !whose.project.empty()
                                            : !input::is_framework(whose.software);
  if (finding.cause == Cause::device_fault && finding.about->call.message.empty() && owned &&
      !finding.headline.empty())
    finding.headline.insert(0, "{owner}: ");
  // The list is of what works.
  if (finding.about->package.works) {
    finding.images.clear();
    finding.have.clear();
  }
  return finding;
}

}  // namespace kshim::verbs

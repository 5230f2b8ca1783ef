// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/explain.h"

#include "analyzer/core/text.h"
#include "analyzer/data/frames.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/input/log/log_text.h"
#include "analyzer/input/log/lookup.h"
#include "analyzer/input/log/miner.h"

namespace kshim::verbs {
namespace {

// What a person pastes; a log is longer, and common words mean less in it.
constexpr std::uint64_t kBrief = 60;
constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kMaxFacts = 24;
constexpr double kUnsure = 0.6;  // what else it can be is worth saying

const char* name_of(const CudaError& error) {
  return error.driver_name != nullptr ? error.driver_name : error.runtime_name;
}

void add_meaning(Explanation& out, int code, std::string note) {
  const CudaError* error = find_cuda_error(code);
  if (error == nullptr || contains(mapped(out.meanings, &Meaning::code), code)) return;
  const auto text = [](const char* name) { return std::string(name != nullptr ? name : ""); };
  out.meanings.push_back(
      {code, text(error->driver_name), text(error->runtime_name), error->message, std::move(note)});
}

void add_also(Explanation& out, int code, Cause first) {
  if (first == Cause::unknown) {
    Facts bare;
    bare.codes = {code};
    const Diagnosis usual = diagnosis_of(bare);
    if (usual.cause != Cause::unknown)
      out.also.push_back({usual.cause, std::string(row_of(usual.cause).when)});
  }
  for (const OtherCauseRow& row : other_causes()) {
    if (row.code == code && row.cause != first) out.also.push_back({row.cause, std::string(row.when)});
  }
}

ReportLine location(const Explanation& out, std::uint64_t line) {
  return out.asked == Asked::log && line != 0 ? ReportLine{out.subject, line} : ReportLine{};
}

Device device_of(const DeviceMention& clue) {
  return {.kind = Device::Kind::named, .name = clue.name, .cc = clue.cc};
}

// Images and GPU of the judgment, as findings of reports have them.
void describe(const Judgment& judgment, Finding& finding) {
  const Cause cause = finding.cause;
  if (judgment.device != nullptr) finding.devices.push_back(device_of(*judgment.device));
  if (!is_image_cause(cause) && cause != Cause::unknown && cause != Cause::stale_error) return;
  Subject subject;
  subject.images.images = judgment.facts.images;
  subject.facts = judgment.facts;
  describe_images(subject, finding);
  if (!judgment.facts.device) finding.images.clear();
  if (judgment.facts.device && has_trait(cause, cause_trait::needs_arch))
    finding.need = sm_name(*judgment.facts.device);
  if (judgment.list != nullptr) finding.object = judgment.list->owner;
}

// The user's own line: the innermost frame outside of what is installed.
void add_place(const std::vector<Place>& frames, Finding& finding) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (owner_of_python(frame->file, frame->function) != FrameOwner::user) continue;
    finding.where.push_back(*frame);
    return;
  }
}

// An assertion is printed before the traceback of the call that reports it.
const std::vector<Place>& frames_of(const LogFacts& clues, const LogMatch& decider) {
  if (!decider.frames.empty() || decider.code == 0) return decider.frames;
  const auto later = std::ranges::find_if(clues.hits, [&](const LogMatch& hit) {
    return hit.line > decider.line && hit.code == decider.code && !hit.frames.empty();
  });
  return later == clues.hits.end() ? decider.frames : later->frames;
}

// Empty where what is said of all of its cause will do.
std::string headline_of(const LogFacts& clues, const Judgment& judgment) {
  const Cause cause = judgment.suspect.cause;
  if (const LogMatch* message = message_behind(clues, judgment); message != nullptr) {
    if (const std::string_view own = title_of_message(message->id); !own.empty()) return std::string(own);
  }
  const int code = judgment.facts.codes.empty() ? 0 : judgment.facts.codes.front();
  const std::string_view of_code = headline_of_code(code);
  if (!of_code.empty() && (cause == Cause::unknown || cause == Cause::device_fault))
    return std::string(of_code);
  if (cause == Cause::unknown && !judgment.facts.codes.empty())
    return fmt::format("{} by itself does not say why", judgment.facts.codes.front());
  return {};
}

Finding finding_of(const LogFacts& clues, const Judgment& judgment, const Explanation& out) {
  const CauseCandidate& suspect = judgment.suspect;
  Finding finding;
  finding.cause = suspect.cause;
  const CauseRow& row = row_of(finding.cause);
  finding.severity = judgment.hit == nullptr ? Severity::warning : row.severity;
  finding.headline = headline_of(clues, judgment);
  finding.confidence = std::clamp(suspect.confidence, 0.0, 0.98);
  if (finding.cause == Cause::unchecked_failure) finding.confidence = std::min(finding.confidence, 0.6);
  if (!judgment.facts.codes.empty()) {
    finding.code = judgment.facts.codes.front();
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
  if (hit != nullptr)
    finding.evidence.push_back({EvidenceId::deciding_line,
                                "The line that decides: " + hit->quote,
                                location(out, line),
                                {{"line", hit->quote}}});
  if (!suspect.because.empty())
    finding.evidence.push_back({EvidenceId::rule, as_sentence(suspect.because), location(out, line)});
  if (judgment.earlier)
    finding.evidence.push_back(
        {EvidenceId::earlier_warning, "An earlier warning: " + judgment.earlier->because, {}});
  for (const CauseCandidate& other : judgment.others)
    finding.evidence.push_back({EvidenceId::later_line, "A later line also fails: " + other.because, {}});
  if (!judgment.went_on.empty()) {
    finding.severity = std::min(finding.severity, Severity::warning);
    finding.evidence.push_back({EvidenceId::went_on, as_sentence(judgment.went_on), {}});
  } else if (hit != nullptr && (hit->thrown || !judgment.others.empty()) &&
             finding.cause == Cause::compiled_out) {
    // The program failed visibly, so this is an error rather than a silent wrong result.
    finding.severity = Severity::error;
  }
  if (hit != nullptr) add_place(frames_of(clues, *hit), finding);
  finding.about = advice_input(clues, judgment, finding);
  return finding;
}

void add_facts(const LogFacts& clues, std::vector<std::string>& out) {
  for (const DeviceMention& device : clues.devices) out.push_back(text_of(device_of(device)));
  if (!clues.kernel_module.empty() || clues.driver.known()) {
    out.push_back(fmt::format("driver {}{}", clues.kernel_module,
                              !clues.driver.known()         ? std::string()
                              : clues.kernel_module.empty() ? fmt::format("for CUDA {}", name(clues.driver))
                                                            : fmt::format(" (CUDA {})", name(clues.driver))));
  }
  if (clues.toolkit.known()) out.push_back(fmt::format("CUDA {}", name(clues.toolkit)));
  for (const PackageMention& package : clues.packages) {
    if (package.version.empty()) continue;
    out.push_back(fmt::format("{} {}{}{}", package.written, package.version,
                              package.variant.empty() ? "" : "+", package.variant));
  }
  for (const ImageList& list : clues.lists) {
    const auto archs =
        mapped(list.images, [](const image::Candidate& image) { return name(image.kind, image.arch); });
    out.push_back(fmt::format("{}: {}", list.owner.empty() ? "built for" : list.owner, join(archs, " ")));
  }
  for (const auto& [key, value] : clues.env) out.push_back(fmt::format("{}={}", key, value));
  out.resize(std::min(out.size(), kMaxFacts));
}

void apply(const ExplainRequest& options, LogFacts& clues, Explanation& out) {
  if (options.assume_cc) {
    clues.devices.clear();
    DeviceMention& device = clues.devices.emplace_back();
    device.cc = *options.assume_cc;
    out.notes.push_back(fmt::format("assuming compute capability {}", name(*options.assume_cc)));
  }
  if (options.assume_driver) {
    clues.driver = *options.assume_driver;
    clues.kernel_module.clear();
    out.notes.push_back(fmt::format("assuming a driver for CUDA {}", name(clues.driver)));
  }
  if (options.assume_toolkit) {
    clues.toolkit = *options.assume_toolkit;
    clues.toolkit_assumed = true;
    out.notes.push_back(fmt::format("assuming CUDA {} as the toolkit", name(clues.toolkit)));
  }
}

// What stands beside the failure, as far as a remedy outside of CUDA depends on it.
TemplateWords words_beside(const LogFacts& clues) {
  AdviceInput at;
  if (!clues.devices.empty()) at.device = clues.devices.front().cc;
  at.driver = clues.driver;
  at.python_version = clues.python_release;
  at.windows = clues.of_windows();
  at.platform = at.windows ? "windows x86_64" : "";
  return {{"torch_index", torch_index(at)}};
}

void conclude(LogFacts clues, const ExplainRequest& options, Explanation& out) {
  apply(options, clues, out);
  add_facts(clues, out.facts);
  if (clues.cut_lines != 0)
    out.notes.push_back(fmt::format("{} overlong lines were truncated", clues.cut_lines));
  out.windows = clues.of_windows();
  const Judgment judgment = judge(clues, clues.lines <= kBrief);
  if (judgment.hit != nullptr) {
    out.line = judgment.hit->line;
    out.quote = judgment.hit->quote;
    if (judgment.hit->code != 0) {
      add_meaning(
          out, judgment.hit->code,
          judgment.hit->old_code == 0
              ? std::string()
              : fmt::format("the runtime used number {} for it before CUDA 10.1", judgment.hit->old_code));
    }
    if (!judgment.hit->as_written.empty())
      out.notes.push_back(fmt::format("no header has the name {}", judgment.hit->as_written));
    if (judgment.suspect.confidence <= kUnsure && judgment.hit->code != 0)
      add_also(out, judgment.hit->code, judgment.suspect.cause);
  }
  if (!judgment.harmless.empty()) out.notes.push_back(judgment.harmless);
  if (judgment.suspect.confidence > 0) {
    out.findings.push_back(finding_of(clues, judgment, out));
    advise_on(out.findings);
    out.next = next_steps(clues, judgment);
    if (judgment.death != nullptr) {
      out.line = judgment.death->line;
      out.quote = judgment.death->quote;
      out.notes.push_back(fmt::format(
          "this did not end the program: line {} shows why it ended, and that is not a CUDA failure",
          judgment.death->line));
    }
    return;
  }
  if (!judgment.harmless.empty()) return;
  if (clues.others.empty()) {
    out.recognized = false;
    return;
  }
  const OtherFailure& other = clues.others.front();
  out.line = other.line;
  out.quote = other.quote;
  out.notes.push_back(fmt::format("not a CUDA failure: {}", other.what));
  out.notes.push_back(expand(other.remedy, words_beside(clues)));
}

/// A number or a name has no line to quote.
void drop_deciding_line(Explanation& out) {
  for (Finding& finding : out.findings)
    std::erase_if(finding.evidence, [](const Evidence& row) { return row.id == EvidenceId::deciding_line; });
}

void explain_number(int number, const ExplainRequest& options, Explanation& out) {
  const CudaError* error = find_cuda_error(number);
  const OldCode* old = find_old_code(number);
  // As a message, so that one path judges all.
  LogParser miner(true);
  const CudaError* meant = old != nullptr ? find_cuda_error(old->now) : error;
  if (meant != nullptr && meant->code != 0) miner.line(name_of(*meant));
  if (error != nullptr)
    add_meaning(out, number, old != nullptr ? "since CUDA 10.1 (in the driver: in all versions)" : "");
  if (old != nullptr)
    add_meaning(out, old->now,
                fmt::format("the meaning of {} in the runtime before CUDA 10.1 ({})", number, old->name));
  out.recognized = error != nullptr || old != nullptr;
  if (!out.recognized || (error != nullptr && number == 0)) return;
  const std::vector<Meaning> meanings = out.meanings;
  conclude(miner.take(), options, out);
  out.meanings = meanings;
  out.recognized = true;
  // Two meanings: neither is sure.
  if (error != nullptr && old != nullptr) {
    for (Finding& finding : out.findings) finding.confidence = std::min(finding.confidence, 0.5);
  }
  drop_deciding_line(out);
}

bool looks_like_a_name(std::string_view text) {
  return text.size() > 3 && std::ranges::all_of(text, [](char c) { return is_alnum(c) || c == '_'; });
}

}  // namespace

std::string_view to_name(Asked asked) {
  constexpr std::string_view kNames[] = {"number", "name", "message", "log"};
  return kNames[static_cast<std::size_t>(asked)];
}

Explanation explain_text(std::string_view text, const ExplainRequest& options) {
  Explanation out;
  text = trim(text);
  out.subject = plain_line(text.substr(0, std::min<std::size_t>(text.size(), 400)));
  if (const auto number = bare_number(text)) {
    out.asked = Asked::number;
    explain_number(*number, options, out);
    return out;
  }
  LogParser miner(true);
  if (looks_like_a_name(text)) {
    const NamedError named = find_by_name(text);
    if (named.error != nullptr) {
      out.asked = Asked::name;
      add_meaning(out, named.error->code, {});
      if (!named.really.empty())
        out.notes.push_back(fmt::format("no CUDA header defines {}; {} is {}", out.subject,
                                        named.guessed ? "the nearest" : "what is meant", named.really));
      if (named.error->code == 0) return out;
      miner.line(name_of(*named.error));
      conclude(miner.take(), options, out);
      drop_deciding_line(out);
      return out;
    }
    out.nearest = nearest_names(text, 3);
  }
  LogText lines([&](std::string_view line) { miner.line(line); }, true);
  lines.take(text);
  lines.finish();
  conclude(miner.take(), options, out);
  return out;
}

Explanation explain_log(std::istream& in, const std::string& name_text, const ExplainRequest& options,
                        const std::function<void(std::uint64_t)>& progress) {
  Explanation out;
  out.asked = Asked::log;
  out.subject = name_text;
  LogParser miner;
  LogText text([&](std::string_view line) { miner.line(line); });
  std::string chunk(kChunk, '\0');
  std::uint64_t done = 0;
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), in.gcount() > 0) {
    const auto got = static_cast<std::size_t>(in.gcount());
    done += got;
    text.take(std::string_view(chunk).substr(0, got));
    if (progress) progress(done);
  }
  text.finish();
  conclude(miner.take(), options, out);
  return out;
}

}  // namespace kshim::verbs

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/explain.h"

#include "analyzer/core/text.h"
#include "analyzer/input/log/log_text.h"
#include "analyzer/input/log/lookup.h"
#include "analyzer/input/log/miner.h"
#include "analyzer/verbs/log_finding.h"
#include "analyzer/verbs/pipeline.h"

namespace kshim::verbs {
using input::LogFacts;

namespace {

// What a person pastes; a log is longer, and common words mean less in it.
constexpr std::uint64_t kBrief = 60;
constexpr std::size_t kChunk = std::size_t{256} << 10;
constexpr std::size_t kMaxFacts = 24;
constexpr double kUnsure = 0.6;  // what else it can be is worth saying

void add_meaning(Explanation& out, int code, std::string note) {
  const CudaError* error = find_cuda_error(code);
  if (error == nullptr || core::contains(core::mapped(out.meanings, &Meaning::code), code)) return;
  const auto text = [](const char* name) { return std::string(name != nullptr ? name : ""); };
  out.meanings.push_back(
      {code, text(error->driver_name), text(error->runtime_name), error->message, std::move(note)});
}

void add_also(Explanation& out, int code, core::Cause first) {
  if (first == core::Cause::unknown) {
    diagnose::Facts bare;
    bare.call.codes = {code};
    const diagnose::Diagnosis usual = diagnosis_of(bare);
    if (usual.cause != core::Cause::unknown)
      out.also.push_back({usual.cause, std::string(row_of(usual.cause).when)});
  }
  for (const data::OtherCauseRow& row : data::other_causes()) {
    if (row.code == code && row.cause != first) out.also.push_back({row.cause, std::string(row.when)});
  }
}

void add_facts(const LogFacts& clues, std::vector<std::string>& out) {
  for (const input::DeviceMention& device : clues.devices) out.push_back(text_of(device_of(device)));
  if (!clues.kernel_module.empty() || clues.driver.known()) {
    out.push_back(fmt::format("driver {}{}", clues.kernel_module,
                              !clues.driver.known()         ? std::string()
                              : clues.kernel_module.empty() ? fmt::format("for CUDA {}", name(clues.driver))
                                                            : fmt::format(" (CUDA {})", name(clues.driver))));
  }
  if (clues.toolkit.known()) out.push_back(fmt::format("CUDA {}", name(clues.toolkit)));
  for (const input::PackageMention& package : clues.packages) {
    if (package.version.empty()) continue;
    out.push_back(fmt::format("{} {}{}{}", package.written, package.version,
                              package.variant.empty() ? "" : "+", package.variant));
  }
  for (const input::ImageList& list : clues.lists) {
    const auto archs =
        core::mapped(list.images, [](const image::Candidate& image) { return name(image.kind, image.arch); });
    out.push_back(
        fmt::format("{}: {}", list.owner.empty() ? "built for" : list.owner, core::join(archs, " ")));
  }
  for (const auto& [key, value] : clues.env) out.push_back(fmt::format("{}={}", key, value));
  out.resize(std::min(out.size(), kMaxFacts));
}

void apply(const ExplainRequest& options, LogFacts& clues, Explanation& out) {
  if (options.assume_cc) {
    clues.devices.clear();
    input::DeviceMention& device = clues.devices.emplace_back();
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

/// What a log shows that fails.
class Log final : public Source {
 public:
  Log(const LogFacts& clues, const diagnose::Judgment& judgment, Explanation& out)
      : Source(out.findings),
        clues_(clues),
        judgment_(judgment),
        log_(out.asked == Asked::log ? out.subject : "") {}

 private:
  void judge() override { findings().push_back(log_finding(clues_, judgment_, log_)); }

  const LogFacts& clues_;
  const diagnose::Judgment& judgment_;
  std::string log_;
};

void explain_clues(LogFacts clues, const ExplainRequest& options, Explanation& out) {
  apply(options, clues, out);
  add_facts(clues, out.facts);
  if (clues.cut_lines != 0)
    out.notes.push_back(fmt::format("{} overlong lines were truncated", clues.cut_lines));
  out.windows = clues.of_windows();
  const diagnose::Judgment judgment = diagnose::judge(clues, clues.lines <= kBrief);
  if (judgment.hit != nullptr) {
    out.line = judgment.hit->line;
    out.quote = judgment.hit->quote;
    out.part = judgment.hit->part;
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
    Log log(clues, judgment, out);
    conclude(log);
    out.next = advise::next_steps(clues, judgment);
    if (judgment.death != nullptr) {
      out.line = judgment.death->line;
      out.quote = judgment.death->quote;
      out.part = {};
      out.notes.push_back(fmt::format(
          "this did not end the program: line {} shows why it ended, and that is not a CUDA failure",
          judgment.death->line));
    }
    return;
  }
  if (!judgment.harmless.empty()) return;
  if (clues.others.empty()) {
    out.recognized = false;
    // What the program went on after did not end it.
    const input::Course& course = clues.course;
    if (course.last_error > std::max(course.last_works, course.last_finished)) {
      out.line = course.last_error;
      out.quote = course.last_error_quote;
    }
    return;
  }
  out.other = other_answer(clues, clues.others.front());
  out.line = out.other->line;
  out.quote = out.other->quote;
  out.part = out.other->part;
  const core::Fix& remedy = out.other->remedy;
  out.notes.push_back(fmt::format("not a CUDA failure: {}", out.other->what));
  out.notes.push_back(remedy.commands.empty()
                          ? remedy.title
                          : fmt::format("{}: {}", remedy.title, core::join(remedy.commands, "; ")));
}

/// A number or a name has no line to quote.
void drop_deciding_line(Explanation& out) {
  for (core::Finding& finding : out.findings)
    std::erase_if(finding.evidence,
                  [](const core::Evidence& row) { return row.id == core::EvidenceId::deciding_line; });
}

void explain_number(int number, const ExplainRequest& options, Explanation& out) {
  const CudaError* error = find_cuda_error(number);
  const input::OldCode* old = input::find_old_code(number);
  // As a message, so that one path judges all.
  input::LogParser miner(true);
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
  explain_clues(miner.take(), options, out);
  out.meanings = meanings;
  out.recognized = true;
  // Two meanings: neither is sure.
  if (error != nullptr && old != nullptr) {
    for (core::Finding& finding : out.findings) finding.confidence = std::min(finding.confidence, 0.5);
  }
  drop_deciding_line(out);
}

bool looks_like_a_name(std::string_view text) {
  return text.size() > 3 && std::ranges::all_of(text, [](char c) { return core::is_alnum(c) || c == '_'; });
}

}  // namespace

std::string_view to_name(Asked asked) {
  constexpr std::string_view kNames[] = {"number", "name", "message", "log"};
  return kNames[static_cast<std::size_t>(asked)];
}

Explanation explain_text(std::string_view text, const ExplainRequest& options) {
  Explanation out;
  text = core::trim(text);
  out.subject = input::plain_line(text.substr(0, std::min<std::size_t>(text.size(), 400)));
  if (const auto number = input::bare_number(text)) {
    out.asked = Asked::number;
    explain_number(*number, options, out);
    return out;
  }
  input::LogParser miner(true);
  if (looks_like_a_name(text)) {
    const input::NamedError named = input::find_by_name(text);
    if (named.error != nullptr) {
      out.asked = Asked::name;
      add_meaning(out, named.error->code, {});
      if (!named.really.empty())
        out.notes.push_back(fmt::format("no CUDA header defines {}; {} is {}", out.subject,
                                        named.guessed ? "the nearest" : "what is meant", named.really));
      if (named.error->code == 0) return out;
      miner.line(name_of(*named.error));
      explain_clues(miner.take(), options, out);
      drop_deciding_line(out);
      return out;
    }
    out.nearest = input::nearest_names(text, 3);
  }
  input::LogText lines([&](std::string_view line) { miner.line(line); }, true);
  lines.take(text);
  lines.finish();
  explain_clues(miner.take(), options, out);
  return out;
}

Explanation explain_log(std::istream& in, const std::string& name_text, const ExplainRequest& options,
                        const std::function<void(std::uint64_t)>& progress) {
  Explanation out;
  out.asked = Asked::log;
  out.subject = name_text;
  input::LogParser miner;
  input::LogText text([&](std::string_view line) { miner.line(line); });
  std::string chunk(kChunk, '\0');
  std::uint64_t done = 0;
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())), in.gcount() > 0) {
    const auto got = static_cast<std::size_t>(in.gcount());
    done += got;
    text.take(std::string_view(chunk).substr(0, got));
    if (progress) progress(done);
  }
  text.finish();
  explain_clues(miner.take(), options, out);
  return out;
}

}  // namespace kshim::verbs

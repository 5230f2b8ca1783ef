// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/line_pattern.h"

#include <nlohmann/json.hpp>
#include <random>

#include "analyzer/diagnose/report_findings.h"
#include "analyzer/verbs/processes.h"

namespace kshim::verbs {
namespace {

enum ValueOf : std::size_t {
  kReport,
  kHost,
  kPid,
  kRank,
  kExe,
  kArguments,
  kRunId,
  kSample,
  kTime,
  kStart,
  kParent,
  kRun,
  kUser,
  kJob,
  kAccount,
  kQueue,
  kOwner,
  kChanged,
  kArrived,
  kDurations  ///< and after these two for each GPU, one for each load
};
constexpr std::size_t kMostDurations = 16;
constexpr std::size_t kGpus = kDurations + kMostDurations;
constexpr std::size_t kPlaceDigits = 4;
constexpr std::size_t kMarkDigits = 14;

/// Stands for a value: 14 digits that are drawn when kshim starts, so that no report has them, and the place.
std::uint64_t mark(std::size_t place) {
  static const std::uint64_t kFirst = [] {
    constexpr std::uint64_t kLeast = 10'000'000'000'000;
    std::random_device random;
    const std::uint64_t drawn = (std::uint64_t{random()} << 32U | random()) % (9 * kLeast);
    return (kLeast + drawn) * 10'000;
  }();
  return kFirst + place;
}
std::string mark_text(std::size_t place) { return std::to_string(mark(place)); }

void add_json(std::string_view text, std::string& out) {
  bool plain = true;
  for (const char c : text) plain = plain & (c >= ' ') & (c <= '~') & (c != '"') & (c != '\\') & (c != '#');
  if (plain) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  std::string json = nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = json.find("##["); at != std::string::npos; at = json.find("##[", at))
    json.replace(at, 1, "\\u0023");  // as in every line: GitHub's runner takes it for a command
  out += json;
}

std::string to_json(std::string_view text) {
  std::string out;
  if (text.empty()) return "null";
  add_json(text, out);
  return out;
}
std::string to_json(std::uint64_t number) { return std::to_string(number); }

void put_marks(Analysis& analysis, ReportFacts& facts, const std::string& report) {
  for (DeviceSummary& device : analysis.devices) device.host = mark_text(kHost);
  for (std::size_t at = 0; at < analysis.devices.size(); ++at) {
    analysis.devices[at].uuid = mark_text(kGpus + 2 * at);
    analysis.devices[at].pci = mark_text(kGpus + 2 * at + 1);
  }
  ProcessSummary& process = analysis.processes.front();
  process.report = mark_text(kReport);
  process.host = mark_text(kHost);
  process.pid = static_cast<long>(mark(kPid));
  if (process.rank) process.rank = mark(kRank);
  process.exe = mark_text(kExe);
  process.argv = {mark_text(kArguments)};
  process.run = mark_text(kRunId);
  if (process.failures == 0) process.sample = mark(kSample);
  for (RunSummary& run : analysis.runs) run.run = mark_text(kRunId);
  for (core::Finding& finding : analysis.findings) {
    for (core::SeenIn& seen : finding.processes) {
      seen.run = mark_text(kRunId);
      seen.host = mark_text(kHost);
      if (seen.rank) seen.rank = mark(kRank);
      seen.pid = static_cast<long>(mark(kPid));
    }
    for (core::Evidence& row : finding.evidence)
      if (row.at.file == report) row.at.file = mark_text(kReport);
    for (core::ReportLine& row : finding.failures)
      if (row.file == report) row.file = mark_text(kReport);
  }
  facts.time = mark_text(kTime);
  facts.start = mark(kStart);
  facts.ppid = mark(kParent);
  facts.run = mark_text(kRun);
  facts.uid = mark_text(kUser);
  facts.job = mark_text(kJob);
  facts.account = mark_text(kAccount);
  facts.queue = mark_text(kQueue);
  facts.owner = mark(kOwner);
  facts.changed = static_cast<std::int64_t>(mark(kChanged));
  facts.arrived = static_cast<std::int64_t>(mark(kArrived));
  for (std::size_t at = 0; at < facts.loads.size(); ++at)
    facts.loads[at].microseconds = mark(kGpus + 2 * analysis.devices.size() + at);
}

}  // namespace

std::string Durations::operator()(std::span<const std::uint32_t> modules) {
  modules_.emplace_back(modules.begin(), modules.end());
  return mark_text(kDurations + std::min(modules_.size(), kMostDurations) - 1);
}

LinePattern::LinePattern(const Analysis& analysis, const Durations& durations, const LineMaker& maker)
    : load_of_(analysis.facts->load_of),
      loads_(analysis.facts->loads.size()),
      durations_(durations.modules()) {
  Analysis marked = analysis;
  const auto facts = std::make_shared<ReportFacts>(*analysis.facts);
  marked.facts = facts;
  put_marks(marked, *facts, analysis.processes.front().report);
  const std::string text = maker.line(marked);
  const std::string drawn = mark_text(0).substr(0, kMarkDigits);
  std::size_t begin = 0;
  for (std::size_t at = text.find(drawn); at != std::string::npos; at = text.find(drawn, begin)) {
    const std::size_t end = at + kMarkDigits + kPlaceDigits;
    std::size_t place = 0;
    std::from_chars(text.data() + at + kMarkDigits, text.data() + end, place);
    const bool whole = text[at - 1] == '"' && text[end] == '"';
    const bool number = text[at - 1] == ':';
    const std::size_t quote = whole ? 1 : 0;
    pieces_.push_back({text.substr(begin, at - quote - begin), place, !whole && !number});
    begin = end + quote;
  }
  rest_ = text.substr(begin);
}

std::string LinePattern::fill(const input::Report& report, const ReportFile& file, const input::Alike& own,
                              const LineMaker& maker) const {
  ReportFacts facts;
  identify(report, file, facts);
  const input::ProcessRecord& process = report.process;
  std::vector<std::string> values(kGpus + 2 * own.gpus.size() + loads_);
  values[kReport] = to_json(report.path);
  values[kHost] = to_json(process.host);
  values[kPid] = to_json(process.pid);
  if (process.rank) values[kRank] = to_json(*process.rank);
  values[kExe] = to_json(process.exe);
  for (const std::string& argument : maker.arguments(process.argv)) {
    if (!values[kArguments].empty()) values[kArguments] += ',';
    add_json(argument, values[kArguments]);
  }
  values[kRunId] = to_json(run_id(report));
  values[kSample] = to_json(process.sample.value_or(1));
  values[kTime] = to_json(facts.time);
  values[kStart] = to_json(facts.start);
  values[kParent] = to_json(facts.ppid);
  values[kRun] = to_json(facts.run);
  values[kUser] = to_json(facts.uid);
  values[kJob] = to_json(facts.job);
  values[kAccount] = to_json(facts.account);
  values[kQueue] = to_json(facts.queue);
  values[kOwner] = to_json(facts.owner);
  values[kChanged] = std::to_string(facts.changed);
  values[kArrived] = std::to_string(facts.arrived);
  for (std::size_t row = 0; row < durations_.size(); ++row) {
    double sum = 0;
    for (const std::uint32_t module : durations_[row]) sum += own.ms[module];
    values[kDurations + row] = to_json(diagnose::duration_clause(sum));
  }
  for (std::size_t gpu = 0; gpu < own.gpus.size(); ++gpu)
    for (std::size_t at = 0; at < 2; ++at) values[kGpus + 2 * gpu + at] = to_json(own.gpus[gpu][at]);
  std::vector<std::uint64_t> sums(loads_);
  for (std::size_t at = 0; at < load_of_.size(); ++at) sums[load_of_[at]] += microseconds(own.ms[at]);
  for (std::size_t at = 0; at < loads_; ++at) values[values.size() - loads_ + at] = to_json(sums[at]);
  std::string out;
  for (const Piece& piece : pieces_) {
    out += piece.text;
    const std::string_view value = values[piece.place];
    if (!piece.inside)
      out += value;
    else if (value.starts_with('"'))
      out += value.substr(1, value.size() - 2);
  }
  return out += rest_;
}

std::size_t LinePattern::weight() const {
  std::size_t out = sizeof(*this) + rest_.size() + load_of_.size() * sizeof load_of_.front();
  for (const Piece& piece : pieces_) out += sizeof piece + piece.text.size();
  for (const auto& modules : durations_) out += sizeof modules + modules.size() * sizeof modules.front();
  return out;
}

}  // namespace kshim::verbs

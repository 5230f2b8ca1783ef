// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/processes.h"

#include "analyzer/core/text.h"
#include "analyzer/diagnose/about.h"

namespace kshim::verbs {
using core::Finding;
using core::join;
using input::Report;

namespace {

constexpr std::size_t kMaxProcesses = 65536;
constexpr std::size_t kMaxText = std::size_t{256} << 20;
constexpr std::size_t kMaxArguments = std::size_t{64} << 10;  // bytes of one command line
constexpr std::size_t kListed = 1024;                         // processes that one finding lists
constexpr std::size_t kRunsTold = 3;
constexpr std::size_t kDescribed =
    512;  // findings whose processes are put into words: it takes a walk over all of them

RunMember member_of(const ProcessSummary& process) {
  return {process.host, process.rank, static_cast<std::uint64_t>(process.pid)};
}

std::string gpus_of(const Report& report) {
  std::set<image::ComputeCapability> out;
  for (const input::DeviceRecord& device : report.devices) {
    if (const auto arch = image::parse_arch(device.compute_capability)) out.insert(arch->cc);
  }
  return join(core::mapped(out, [](image::ComputeCapability cc) { return name(cc); }), ", ");
}

std::string some_of(const std::set<std::string>& names, std::string_view noun) {
  constexpr std::size_t kNamed = 3;
  if (names.size() <= kNamed) return core::enumerate({names.begin(), names.end()});
  return fmt::format("{} {}", grouped_number(names.size()), noun);
}

// No genuine set of reports has more distinct findings, and nobody would read them. Errors have room of
// their own: what is merely worth a note cannot crowd them out.
constexpr std::size_t kMaxErrors = 4096;
constexpr std::size_t kMaxQuiet = 2048;
constexpr std::size_t kMaxSightings = std::size_t{1} << 22;

std::size_t weight_of(const std::vector<std::string>& texts) {
  std::size_t out = 0;
  for (const std::string& text : texts) out += sizeof(text) + text.size();
  return out;
}

std::size_t weight_of(const Finding& finding) {
  std::size_t out = sizeof(finding) + finding.object.size() + finding.headline.size() +
                    finding.failed_kernel.size() + weight_of(finding.kernels) + weight_of(finding.have) +
                    weight_of(finding.remarks);
  for (const core::Evidence& row : finding.evidence) {
    out += sizeof(row) + row.text.size() + row.at.file.size();
    for (const auto& [name, value] : row.arguments) out += sizeof(value) + name.size() + value.size();
  }
  for (const core::ReportLine& row : finding.failures) out += sizeof(row) + row.file.size();
  for (const core::Device& row : finding.devices) out += sizeof(row) + row.name.size();
  for (const core::Place& row : finding.where)
    out += sizeof(row) + row.file.size() + row.function.size() + row.object.size();
  // What its fixes depend on is little beside the images.
  if (finding.about)
    out += sizeof(diagnose::Facts) + finding.about->images.list.size() * sizeof(diagnose::ImageFact);
  return out + finding.images.size() * sizeof(core::ImageVerdict);
}

constexpr std::size_t kMaxHosts = 4;
constexpr std::size_t kMaxRanges = 8;

std::set<std::uint64_t> ranks_of(const std::vector<RunMember>& members) {
  std::set<std::uint64_t> out;
  for (const RunMember& member : members)
    if (member.rank) out.insert(*member.rank);
  return out;
}

std::set<std::string_view> hosts_of(const std::vector<RunMember>& members) {
  std::set<std::string_view> out;
  for (const RunMember& member : members) out.insert(member.host);
  return out;
}

std::string on_hosts(const std::set<std::string_view>& hosts) {
  if (hosts.size() > kMaxHosts) return fmt::format("on {} hosts", grouped_number(hosts.size()));
  return "on " + core::enumerate({hosts.begin(), hosts.end()});
}

// Hosts in the order of the numbers on them.
std::vector<std::pair<std::string_view, std::vector<std::uint64_t>>> by_host(
    const std::vector<RunMember>& members, bool ranks) {
  std::map<std::string_view, std::set<std::uint64_t>> hosts;
  for (const RunMember& member : members) hosts[member.host].insert(ranks ? *member.rank : member.pid);
  std::vector<std::pair<std::string_view, std::vector<std::uint64_t>>> out;
  for (const auto& [host, numbers] : hosts)
    out.emplace_back(host, std::vector<std::uint64_t>(numbers.begin(), numbers.end()));
  if (ranks)
    std::ranges::stable_sort(
        out, [](const auto& a, const auto& b) { return a.second.front() < b.second.front(); });
  return out;
}

constexpr std::size_t kMaxNotes = 50;
constexpr std::size_t kMaxNoteLength = 1024;

}  // namespace

std::string run_id(const Report& report) {
  if (!report.process.run.empty()) return report.process.run;
  // Started by SLURM and not by `kshim run`: its job is the run.
  const auto job = report.process.env.find("SLURM_JOB_ID");
  return job != report.process.env.end() ? "SLURM job " + job->second.substr(0, 64) : std::string();
}

std::uint32_t Processes::run_of(const Report& report) {
  std::string id = run_id(report);
  const auto [at, first] = run_by_id_.try_emplace(id, static_cast<std::uint32_t>(runs_.size()));
  if (first) runs_.push_back({std::move(id), {}});
  return at->second;
}

std::size_t identify(const Report& report, ProcessSummary& process) {
  process.report = report.path;
  process.host = report.process.host;
  process.pid = static_cast<long>(report.process.pid);
  process.rank = report.process.rank;
  process.exe = report.process.exe;
  process.argv.clear();
  std::size_t bytes = 0;
  for (const std::string& argument : report.process.argv) {
    bytes += argument.size() + sizeof(std::string);
    if (bytes > kMaxArguments) {
      process.argv.emplace_back("...");
      break;
    }
    process.argv.push_back(argument);
  }
  return bytes;
}

std::optional<std::uint32_t> Processes::add(const Report& report, std::uint64_t loads) {
  ProcessSummary process;
  const std::size_t bytes = identify(report, process);
  process.failures = static_cast<unsigned>(report.failures.size());
  process.modules = static_cast<unsigned>(std::min<std::uint64_t>(loads, ~0U));
  process.complete = report.end.has_value();
  process.lost = diagnose::saturated(report.end ? report.end->dropped : 0, report.missing);
  process.damaged = report.missing != 0;
  process.sample = report.failures.empty() ? report.process.sample.value_or(1) : 1;
  process.compiler = report.compiler && !report.driver;
  process.ending = diagnose::ending_of(report);
  const std::size_t weight =
      sizeof(process) + bytes + process.report.size() + process.host.size() + process.exe.size();
  if (facts_.size() == kMaxProcesses || weight_ + weight > kMaxText) {
    ++left_out_;
    return std::nullopt;
  }
  weight_ += weight;
  const auto index = static_cast<std::uint32_t>(facts_.size());
  Facts facts{run_of(report), gpus_of(report), report.driver ? report.driver->cuda_version : "",
              process.host};
  process.run = runs_[facts.run].id;
  runs_[facts.run].processes.push_back(index);
  facts_.push_back(std::move(facts));
  out_.processes.push_back(std::move(process));
  return index;
}

void Processes::summarize_runs() {
  for (const Run& run : runs_) {
    RunSummary summary;
    summary.run = run.id;
    std::set<std::string> hosts;
    std::set<std::uint64_t> ranks;
    for (const std::uint32_t index : run.processes) {
      const ProcessSummary& process = out_.processes[index];
      hosts.insert(process.host);
      if (process.rank) ranks.insert(*process.rank);
      summary.incomplete += process.complete ? 0 : 1;
      summary.failed += process.failures != 0 ? 1 : 0;
    }
    summary.processes = run.processes.size();
    summary.hosts = hosts.size();
    summary.ranks = ranks.size();
    out_.runs.push_back(std::move(summary));
  }
}

// If only one rank fails, its GPU, driver or host usually differs: names the difference, where every process
// has a value and no affected one has the value of an unaffected one.
void Processes::tell_apart(const Run& run, const std::vector<bool>& seen, Finding& finding) const {
  struct Way {
    std::string Facts::*value;
    const char *sentence, *noun, *others;
  };
  constexpr Way kWays[] = {
      {&Facts::gpus, "These are the processes whose GPU is of compute capability {}; the others have {}.",
       "kinds", "kinds"},
      {&Facts::driver, "These processes have a driver for CUDA {}; the others have one for CUDA {}.",
       "versions", "versions"},
      {&Facts::host, "These are all processes of {}; on {} there is none of it.", "hosts", "other hosts"}};
  for (const Way& way : kWays) {
    std::set<std::string> these;
    std::set<std::string> others;
    for (const std::uint32_t index : run.processes)
      (seen[index] ? these : others).insert(facts_[index].*way.value);
    if (these.empty() || others.empty() || these.contains("") || others.contains("") ||
        std::ranges::any_of(these, [&](const std::string& text) { return others.contains(text); }))
      continue;
    return finding.remarks.push_back(
        fmt::format(fmt::runtime(way.sentence), some_of(these, way.noun), some_of(others, way.others)));
  }
}

void Processes::describe(const FindingTable::Row& row, Finding& finding) {
  finding.processes_total = row.processes;
  for (const Sighting& sighting : row.seen) {
    finding.seen_by.push_back(sighting.process);
    if (finding.processes.size() == kListed) continue;
    const ProcessSummary& process = out_.processes[sighting.process];
    finding.processes.push_back({process.run, process.host, process.rank, process.pid, sighting.count});
  }
  if (out_.processes.size() < 2 || row.seen.empty() || described_++ >= kDescribed) return;
  std::vector<bool> seen(out_.processes.size());
  for (const Sighting& sighting : row.seen) seen[sighting.process] = true;
  std::vector<std::string> parts;
  std::size_t runs = 0;
  std::set<std::uint32_t> touched;
  for (const Sighting& sighting : row.seen) touched.insert(facts_[sighting.process].run);
  for (const std::uint32_t number : touched) {
    if (++runs > kRunsTold) continue;
    const Run& run = runs_[number];
    std::vector<RunMember> some;
    std::vector<RunMember> all;
    for (const std::uint32_t index : run.processes) {
      all.push_back(member_of(out_.processes[index]));
      if (seen[index]) some.push_back(all.back());
    }
    std::string text = members_text(some, all);
    if (runs_.size() > 1)
      text = fmt::format("{}: {}", run.id.empty() ? "without a run" : "run " + run.id.substr(0, 40), text);
    parts.push_back(std::move(text));
    if (some.size() < all.size() && finding.severity >= core::Severity::warning && runs_.size() == 1)
      tell_apart(run, seen, finding);
  }
  finding.seen_in = join(parts, "; ");
  if (runs > kRunsTold) finding.seen_in += fmt::format("; and {} more runs", runs - kRunsTold);
}

void FindingTable::add(Finding&& finding, std::optional<std::uint32_t> process) {
  const std::uint64_t count = finding.count;
  std::string key = diagnose::key_of(finding);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    Row& row = rows_[found->second];
    weight_ -= row.weight;
    diagnose::merge(row.finding, std::move(finding));
    row.weight = weight_of(row.finding);
    weight_ += row.weight;
    see(row, process, count);
    return;
  }
  const bool error = finding.severity == core::Severity::error;
  const std::size_t weight = weight_of(finding);
  const bool full = error ? rows_.size() - quiet_ >= kMaxErrors : quiet_ >= kMaxQuiet;
  if (full || weight_ + weight > kMaxText) {
    ++left_out_;
    return;
  }
  quiet_ += error ? 0 : 1;
  weight_ += weight;
  by_key_.emplace(std::move(key), rows_.size());
  rows_.push_back({std::move(finding), {}, 0, weight});
  see(rows_.back(), process, count);
}

void FindingTable::see(Row& row, std::optional<std::uint32_t> process, std::uint64_t count) {
  if (!process) return;
  if (!row.seen.empty() && row.seen.back().process == *process) {
    row.seen.back().count = diagnose::saturated(row.seen.back().count, count);
    return;
  }
  ++row.processes;
  if (sightings_ == kMaxSightings) return;
  ++sightings_;
  row.seen.push_back({*process, count});
}

std::string grouped_number(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string ranges_text(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::vector<std::string> ranges;
  std::size_t told = 0;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (ranges.size() == kMaxRanges) break;
    // Two adjacent ranks are two numbers, not a range.
    if (last == i + 1) last = i;
    ranges.push_back(last == i ? std::to_string(numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
    told += last - i + 1;
    i = last + 1;
  }
  std::string out = join(ranges, ", ");
  if (told < numbers.size()) out += fmt::format(" and {} more", grouped_number(numbers.size() - told));
  return out;
}

std::string members_text(const std::vector<RunMember>& some, const std::vector<RunMember>& all) {
  if (some.empty()) return {};
  // A launcher (torchrun) has no rank of its own: where it does not matter, ranks are told all the same.
  const bool ranks = ranks_of(all).size() > 1 && std::ranges::all_of(some, [](const RunMember& member) {
                       return member.rank.has_value();
                     });
  const std::size_t of = ranks ? ranks_of(all).size() : all.size();
  const std::size_t count = ranks ? ranks_of(some).size() : some.size();
  const char* noun = ranks ? "rank" : "process";
  const char* nouns = ranks ? "ranks" : "processes";
  if (of == 1) return fmt::format("process {} {}", some.front().pid, on_hosts(hosts_of(some)));
  if (count == of)
    return fmt::format("{} {} {}", of == 2 ? "both" : "all " + grouped_number(of), nouns,
                       on_hosts(hosts_of(some)));
  const std::string share = fmt::format(" ({} of {})", grouped_number(count), grouped_number(of));
  if (count == 1) {
    return fmt::format("{} {} only, {}{}", noun, ranks ? *some.front().rank : some.front().pid,
                       on_hosts(hosts_of(some)), share);
  }
  std::vector<std::string> parts;
  std::size_t hosts_left = 0;
  std::size_t left = 0;
  for (const auto& [host, numbers] : by_host(some, ranks)) {
    if (parts.size() == kMaxHosts) {
      ++hosts_left;
      left += numbers.size();
      continue;
    }
    parts.push_back(fmt::format("{} on {}", ranges_text(numbers), host));
  }
  std::string out = fmt::format("{} {}", nouns, join(parts, ", "));
  if (hosts_left != 0)
    out += fmt::format(" and {} on {}", grouped_number(left), core::counted(hosts_left, "more host"));
  return out + share;
}

void NoteList::add(std::string place, std::string text) {
  text.resize(std::min(text.size(), kMaxNoteLength));
  const auto known = std::ranges::find(rows_, text, &Row::text);
  if (known != rows_.end()) {
    ++known->more;
  } else if (rows_.size() < kMaxNotes) {
    rows_.push_back({std::move(place), std::move(text), 0});
  } else {
    ++others_;
  }
}

void NoteList::take(std::vector<std::string>& out) {
  for (Row& row : rows_) {
    std::string note = row.place + ": " + row.text;
    if (row.more != 0) note += fmt::format(" (and so of {})", core::counted(row.more, "more file"));
    out.push_back(std::move(note));
  }
  if (others_ != 0) out.push_back(fmt::format("{} more notes were left out", others_));
  rows_.clear();
}

}  // namespace kshim::verbs

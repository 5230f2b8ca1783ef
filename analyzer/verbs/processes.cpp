// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/processes.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "analyzer/core/text.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/verbs/ranks.h"
#include "kshim/image/arch.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostProcesses = 65536;
constexpr std::size_t kMostText = std::size_t{256} << 20;
constexpr std::size_t kMostArguments = std::size_t{64} << 10;  // bytes of one command line
constexpr std::size_t kListed = 1024;                          // processes that one finding lists
constexpr std::size_t kRunsTold = 3;
constexpr std::size_t kDescribed =
    512;  // findings whose processes are put into words: it takes a walk over all of them

Member member_of(const ProcessSummary& process) {
  return {process.host, process.rank, static_cast<std::uint64_t>(process.pid)};
}

std::string gpus_of(const Report& report) {
  std::set<image::ComputeCapability> out;
  for (const DeviceRecord& device : report.devices) {
    if (const auto arch = image::parse_arch(device.compute_capability)) out.insert(arch->cc);
  }
  std::vector<std::string> names;
  names.reserve(out.size());
  for (const image::ComputeCapability cc : out) names.emplace_back(image::to_name(cc).view());
  return join(names, ", ");
}

// The values of the processes that are affected and of those that are not, where no process of the one has a
// value of the other, and every process has one.
struct Apart {
  std::vector<std::string> these, others;
};
template <class Value>
std::optional<Apart> apart(const std::vector<std::uint32_t>& processes, const std::vector<bool>& seen,
                           Value&& value) {
  std::set<std::string> these;
  std::set<std::string> others;
  for (const std::uint32_t index : processes) {
    const std::string& text = value(index);
    if (text.empty()) return std::nullopt;
    (seen[index] ? these : others).insert(text);
  }
  for (const std::string& text : these) {
    if (others.count(text) != 0) return std::nullopt;
  }
  if (these.empty() || others.empty()) return std::nullopt;
  return Apart{{these.begin(), these.end()}, {others.begin(), others.end()}};
}

std::string some_of(const std::vector<std::string>& names, std::string_view noun) {
  constexpr std::size_t kNamed = 3;
  if (names.size() <= kNamed) return enumerate(names);
  return fmt::format("{} {}", grouped_number(names.size()), noun);
}

}  // namespace

std::uint32_t Processes::run_of(const Report& report) {
  std::string id = report.process.run;
  if (id.empty()) {
    // Started by SLURM and not by `kshim run`: its job is the run.
    const auto job = report.process.env.find("SLURM_JOB_ID");
    if (job != report.process.env.end()) id = "SLURM job " + job->second.substr(0, 64);
  }
  const auto [at, first] = run_by_id_.try_emplace(id, static_cast<std::uint32_t>(runs_.size()));
  if (first) runs_.push_back({std::move(id), {}});
  return at->second;
}

std::optional<std::uint32_t> Processes::add(const Report& report, std::uint64_t loads) {
  ProcessSummary process;
  process.report = report.path;
  process.host = report.process.host;
  process.pid = static_cast<long>(report.process.pid);
  process.rank = report.process.rank;
  process.exe = report.process.exe;
  std::size_t bytes = 0;
  for (const std::string& argument : report.process.argv) {
    bytes += argument.size() + sizeof(std::string);
    if (bytes > kMostArguments) {
      process.argv.emplace_back("...");
      break;
    }
    process.argv.push_back(argument);
  }
  process.failures = static_cast<unsigned>(report.failures.size());
  process.modules = static_cast<unsigned>(std::min<std::uint64_t>(loads, ~0U));
  process.complete = report.end.has_value();
  process.lost = saturated(report.end ? report.end->dropped : 0, report.missing);
  process.damaged = report.missing != 0;
  const std::size_t weight =
      sizeof(process) + bytes + process.report.size() + process.host.size() + process.exe.size();
  if (facts_.size() == kMostProcesses || weight_ + weight > kMostText) {
    ++left_out_;
    return std::nullopt;
  }
  weight_ += weight;
  const auto index = static_cast<std::uint32_t>(facts_.size());
  Facts facts;
  facts.run = run_of(report);
  facts.gpus = gpus_of(report);
  if (report.driver) facts.driver = report.driver->cuda_version;
  process.run = runs_[facts.run].id;
  runs_[facts.run].processes.push_back(index);
  facts_.push_back(std::move(facts));
  out_.processes.push_back(std::move(process));
  return index;
}

void Processes::summarise_runs() {
  for (const Run& run : runs_) {
    RunSummary summary;
    summary.id = run.id;
    std::set<std::string> hosts;
    std::set<unsigned> ranks;
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

// A rank that is alone in failing is on another kind of host, as a rule: that is said where it is so.
void Processes::tell_apart(const Run& run, const std::vector<bool>& seen, Finding& finding) const {
  if (const auto gpus =
          apart(run.processes, seen, [&](std::uint32_t i) -> const std::string& { return facts_[i].gpus; })) {
    finding.remarks.push_back(
        fmt::format("These are the processes whose GPU is of compute capability {}; the others have {}.",
                    some_of(gpus->these, "kinds"), some_of(gpus->others, "kinds")));
  } else if (const auto driver = apart(run.processes, seen, [&](std::uint32_t i) -> const std::string& {
               return facts_[i].driver;
             })) {
    finding.remarks.push_back(
        fmt::format("These are the processes whose driver is for CUDA {}; the others' is for {}.",
                    some_of(driver->these, "versions"), some_of(driver->others, "versions")));
  } else if (const auto hosts = apart(run.processes, seen, [&](std::uint32_t i) -> const std::string& {
               return out_.processes[i].host;
             })) {
    finding.remarks.push_back(fmt::format("These are all processes of {}; on {} there is none of it.",
                                          some_of(hosts->these, "hosts"),
                                          some_of(hosts->others, "other hosts")));
  }
}

void Processes::describe(const FindingTable::Row& row, Finding& finding) {
  finding.processes_total = row.processes;
  for (const Sighting& sighting : row.seen) {
    if (finding.processes.size() == kListed) break;
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
    std::vector<Member> some;
    std::vector<Member> all;
    for (const std::uint32_t index : run.processes) {
      all.push_back(member_of(out_.processes[index]));
      if (seen[index]) some.push_back(all.back());
    }
    std::string text = members_text(some, all);
    if (runs_.size() > 1)
      text = fmt::format("{}: {}", run.id.empty() ? "without a run" : "run " + run.id.substr(0, 40), text);
    parts.push_back(std::move(text));
    if (some.size() < all.size() && finding.severity >= Severity::warning && runs_.size() == 1)
      tell_apart(run, seen, finding);
  }
  finding.seen_in = join(parts, "; ");
  if (runs > kRunsTold) finding.seen_in += fmt::format("; and {} more runs", runs - kRunsTold);
}

}  // namespace kshim::analysis

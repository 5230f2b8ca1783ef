// SPDX-License-Identifier: Apache-2.0
// A suite a process, a case a finding; a process without one passes.
#include <fmt/core.h>

#include <map>
#include <set>

#include "analyzer/core/text.h"
#include "analyzer/render/junit.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share_place.h"

namespace kshim::analysis {
namespace {

// Names that stay the same in the next run, as far as that is possible.
std::vector<std::string> names_of(const std::vector<ProcessSummary>& processes) {
  std::map<std::string, unsigned> times;
  std::vector<std::string> names;
  for (const ProcessSummary& process : processes) {
    std::string name(process.exe.empty() ? "process" : basename_of(process.exe));
    if (process.rank) name += fmt::format(" rank {}", *process.rank);
    ++times[name];
    names.push_back(std::move(name));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (times[names[i]] > 1) names[i] += fmt::format(" (pid {})", processes[i].pid);
  }
  return names;
}

// Merged findings have the evidence of every process that they happened in.
std::set<std::string> reports_of(const Finding& finding) {
  std::set<std::string> reports;
  for (const Evidence& evidence : finding.evidence) reports.insert(evidence.at.file);
  return reports;
}

TestCase clean_case(const std::string& name, const ProcessSummary& process) {
  TestCase test{.group = name, .name = "device code", .type = {}, .message = {}, .text = {}};
  if (!process.complete)
    test.text = "The report has no end: the process was killed, left by _exit, or still runs.";
  return test;
}

TestCase blind_case(const BlindProcess& process, bool alarming) {
  return {.group = std::string(basename_of(process.exe)),
          .name = "watched",
          .result = alarming ? TestResult::broken : TestResult::skipped,
          .type = alarming ? "blind" : "",
          .message = fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason),
          .text = {}};
}

}  // namespace

std::string render_junit(const Analysis& analysis) {
  const std::vector<std::string> names = names_of(analysis.processes);
  std::map<std::string, std::size_t> index;  // of a report
  std::vector<TestSuite> suites(analysis.processes.size());
  for (std::size_t i = 0; i < suites.size(); ++i) {
    suites[i].name = names[i];
    index.emplace(analysis.processes[i].report, i);
  }
  TestSuite others{.name = "kshim", .cases = {}};
  for (const Finding& finding : analysis.findings) {
    bool placed = false;
    for (const std::string& report : reports_of(finding)) {
      const auto found = index.find(report);
      if (found == index.end()) continue;
      suites[found->second].cases.push_back(test_case(finding, names[found->second]));
      placed = true;
    }
    if (!placed) others.cases.push_back(test_case(finding, "kshim"));
  }
  for (std::size_t i = 0; i < suites.size(); ++i) {
    if (suites[i].cases.empty()) suites[i].cases.push_back(clean_case(names[i], analysis.processes[i]));
  }
  for (const BlindProcess& process : analysis.blind)
    others.cases.push_back(blind_case(process, analysis.verdict == Verdict::blind));
  if (!others.cases.empty()) suites.push_back(std::move(others));
  return junit_xml("kshim analyze", suites);
}

}  // namespace kshim::analysis

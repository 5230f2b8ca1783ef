// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/junit.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share_place.h"
#include "analyzer/render/text_page.h"

namespace kshim::analysis {
namespace {

constexpr unsigned kWidth = 100;
constexpr std::size_t kNameBytes = 500;  // CI servers make columns and URLs of names

// XML 1.0 has no way to write most control characters, nor U+FFFE and U+FFFF.
std::string xml_line(std::string_view text) { return escape_markup(harmless(text)); }

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out += xml_line(line);
    if (line.size() < text.size()) out += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

void attribute(std::string& out, const char* name, std::string_view value) {
  out.append(" ").append(name).append("=\"").append(xml_line(value)).append("\"");
}

struct Counts {
  std::array<std::size_t, 4> of{};
  std::size_t all = 0;
  void add(TestResult result) {
    ++of.at(static_cast<std::size_t>(result));
    ++all;
  }
};

Counts counts_of(const TestSuite& suite) {
  Counts counts;
  for (const TestCase& test : suite.cases) counts.add(test.result);
  return counts;
}

void write_counts(std::string& out, const Counts& counts) {
  attribute(out, "tests", std::to_string(counts.all));
  attribute(out, "failures", std::to_string(counts.of.at(static_cast<std::size_t>(TestResult::failed))));
  attribute(out, "errors", std::to_string(counts.of.at(static_cast<std::size_t>(TestResult::broken))));
  attribute(out, "skipped", std::to_string(counts.of.at(static_cast<std::size_t>(TestResult::skipped))));
}

void write_result(std::string& out, const TestCase& test, const char* tag) {
  out.append("      <").append(tag);
  attribute(out, "message", test.message);
  if (!test.type.empty()) attribute(out, "type", test.type);
  if (test.text.empty()) {
    out += "/>\n";
  } else {
    out.append(">").append(xml_text(test.text)).append("</").append(tag).append(">\n");
  }
}

void write_case(std::string& out, const TestCase& test) {
  out += "    <testcase";
  attribute(out, "classname", clipped(test.group, kNameBytes));
  attribute(out, "name", clipped(test.name, kNameBytes));
  if (test.result == TestResult::passed && test.text.empty()) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  switch (test.result) {
    case TestResult::passed:
      out.append("      <system-out>").append(xml_text(test.text)).append("</system-out>\n");
      break;
    case TestResult::failed:
      write_result(out, test, "failure");
      break;
    case TestResult::broken:
      write_result(out, test, "error");
      break;
    case TestResult::skipped:
      write_result(out, test, "skipped");
      break;
  }
  out += "    </testcase>\n";
}

}  // namespace

std::string junit_xml(std::string_view name, const std::vector<TestSuite>& suites) {
  Counts all;
  for (const TestSuite& suite : suites) {
    for (const TestCase& test : suite.cases) all.add(test.result);
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites";
  attribute(out, "name", name);
  write_counts(out, all);
  out += ">\n";
  for (const TestSuite& suite : suites) {
    out += "  <testsuite";
    attribute(out, "name", clipped(suite.name, kNameBytes));
    write_counts(out, counts_of(suite));
    out += ">\n";
    for (const TestCase& test : suite.cases) write_case(out, test);
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

TestCase test_case(const Finding& finding, std::string group) {
  TextPage page({.unicode = true, .width = kWidth});
  write_finding(finding, 1, Detail::full, page);
  const bool error = finding.severity == Severity::error;
  const std::string cause(row_of(finding.cause).name);
  return {std::move(group),  title_of(finding),     error ? TestResult::failed : TestResult::passed, cause,
          title_of(finding), std::move(page).take()};
}

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

std::string render_junit(const Analysis& analysis, Format, const RenderOptions&) {
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

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/junit.h"

#include <algorithm>
#include <array>

#include "analyzer/core/escape.h"
#include "analyzer/core/text.h"
#include "analyzer/render/finding_page.h"
#include "analyzer/render/finding_text.h"
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

}  // namespace kshim::analysis

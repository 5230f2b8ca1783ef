// SPDX-License-Identifier: Apache-2.0
// A suite a file on disk, a case an object and target. What is wrong with an object on every target (damage)
// is a case of its own.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyzer/render/junit.h"
#include "analyzer/render/scan/render.h"

namespace kshim::scan {
namespace {

using analysis::Finding;
using analysis::Severity;
using analysis::TestCase;
using analysis::TestSuite;

constexpr const char* kWhole = "device code";
constexpr const char* kExpected = "expected";

// Findings name a target without its suffix: it is a GPU.
std::string need_of(image::Arch target) {
  return std::string(image::to_name(image::ImageKind::cubin, {target.cc, image::Suffix::none}).view());
}

TestCase passed(const std::string& group, const std::string& name) {
  return {.group = group, .name = name, .type = {}, .message = {}, .text = {}};
}

// Several findings of one case: the worst, which comes first, decides; all are told.
TestCase judged(const std::vector<const Finding*>& findings, const std::string& group,
                const std::string& name) {
  TestCase out = passed(group, name);
  bool first = true;
  for (const Finding* finding : findings) {
    TestCase one = analysis::test_case(*finding, group);
    if (first) {
      one.name = name;
      out = std::move(one);
    } else {
      out.text += '\n' + one.text;
    }
    first = false;
  }
  return out;
}

using ByObject = std::unordered_map<std::string, std::vector<const Finding*>>;

void add_cases(const Scan& scan, const ScannedObject& object, const std::vector<const Finding*>& findings,
               TestSuite& suite) {
  const std::string group = object.name();
  std::map<std::string, std::vector<const Finding*>> by_need;
  std::vector<const Finding*> unmet;
  for (const Finding* finding : findings)
    (finding->cause == analysis::Cause::unmet_expectation ? unmet : by_need[finding->need])
        .push_back(finding);
  if (object.expected || !unmet.empty()) suite.cases.push_back(judged(unmet, group, kExpected));
  std::vector<const Finding*> rest;
  std::set<std::string> told;
  for (const image::Arch target : scan.targets) {
    const std::string need = need_of(target);
    suite.cases.push_back(
        judged(by_need[need], group, std::string(image::to_name(image::ImageKind::cubin, target).view())));
    told.insert(need);
  }
  for (const Finding* finding : findings) {
    if (!told.contains(finding->need) && finding->cause != analysis::Cause::unmet_expectation)
      rest.push_back(finding);
  }
  if ((told.empty() && !object.expected && unmet.empty()) || !rest.empty())
    suite.cases.push_back(judged(rest, group, kWhole));
}

}  // namespace

std::string render_junit(const Scan& scan) {
  ByObject findings;
  for (const Finding& finding : scan.findings) {
    findings[finding.object].push_back(&finding);
    for (const std::string& object : finding.other_objects) findings[object].push_back(&finding);
  }
  std::vector<TestSuite> suites;
  std::unordered_map<std::string, std::size_t> suite_of;
  for (const ScannedObject& object : scan.objects) {
    const auto [at, added] = suite_of.try_emplace(object.path, suites.size());
    if (added) suites.push_back({.name = object.path, .cases = {}});
    const auto own = findings.find(object.name());
    add_cases(scan, object, own == findings.end() ? std::vector<const Finding*>() : own->second,
              suites[at->second]);
    if (own != findings.end()) own->second.clear();
  }
  TestSuite others{.name = "kshim", .cases = {}};
  for (const Finding& finding : scan.findings) {
    const auto& left = findings[finding.object];
    if (std::find(left.begin(), left.end(), &finding) != left.end())
      others.cases.push_back(analysis::test_case(finding, "kshim"));
  }
  for (const std::string& note : scan.notes) {
    TestCase unread = passed("kshim", "readable: " + note.substr(0, note.find(": ")));
    unread.result = scan.named_unread ? analysis::TestResult::broken : analysis::TestResult::skipped;
    if (scan.named_unread) unread.type = "unread";
    unread.message = note;
    others.cases.push_back(std::move(unread));
  }
  if (!others.cases.empty()) suites.push_back(std::move(others));
  return analysis::junit_xml("kshim scan", suites);
}

}  // namespace kshim::scan

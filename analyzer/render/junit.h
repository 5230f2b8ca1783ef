// SPDX-License-Identifier: Apache-2.0
// JUnit's XML as CI servers read it: suites of cases, each passed, failed, broken or skipped.
#pragma once

#include "analyzer/core/finding.h"

namespace kshim::analysis {

enum class TestResult : std::uint8_t { passed, failed, broken, skipped };

struct TestCase {
  std::string group;  ///< "classname"
  std::string name;
  TestResult result = TestResult::passed;
  std::string type;     ///< of a failure: the cause
  std::string message;  ///< one line
  std::string text;     ///< more lines; of a case that passed, its output
};

struct TestSuite {
  std::string name;
  std::vector<TestCase> cases;
};

std::string junit_xml(std::string_view name, const std::vector<TestSuite>& suites);

/// A finding as a case: an error fails, anything else passes and says so in its output.
TestCase test_case(const Finding& finding, std::string group);

}  // namespace kshim::analysis

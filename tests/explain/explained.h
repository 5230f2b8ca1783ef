// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "analyzer/verbs/explain.h"
#include "tests/support/command_names.h"

namespace kshim::test {

/// What `kshim explain --log` says of a log with this text.
inline Explanation explained(const std::string& text, const ExplainRequest& options = {}) {
  std::istringstream in(text);
  return explain_log(in, "a.log", options, {});
}

inline Finding first_of(const std::string& log) {
  const Explanation explanation = explained(log);
  EXPECT_FALSE(explanation.findings.empty()) << log;
  return explanation.findings.empty() ? Finding{} : explanation.findings.front();
}

inline std::string first_command(const Finding& finding) {
  return finding.fixes.empty() || finding.fixes.front().commands.empty()
             ? std::string()
             : finding.fixes.front().commands.front();
}

inline std::string all_commands(const Finding& finding) {
  std::string out;
  for (const Fix& fix : finding.fixes)
    for (const std::string& command : fix.commands) out += command + "\n";
  return out;
}

}  // namespace kshim::test

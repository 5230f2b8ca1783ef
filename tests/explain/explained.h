// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace kshim::test

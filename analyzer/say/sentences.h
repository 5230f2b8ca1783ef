// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

struct VerdictLine {
  Tone tone = Tone::plain;
  std::string head;  ///< "ok:"; empty where the findings say it
  std::string text;
};
VerdictLine verdict_line(const Analysis& analysis);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/scan.h"

namespace kshim::analysis {

struct VerdictLine {
  Tone tone = Tone::plain;
  std::string head;  ///< "ok:"; empty where the findings say it
  std::string text;
};
VerdictLine verdict_line(const Analysis& analysis);

}  // namespace kshim::analysis

namespace kshim::scan {

// What a kernel takes of a multiprocessor, in words.

/// "24 to 40 registers, 2048 bytes shared, up to 256 threads", over all architectures; empty where nothing is
/// known, as of PTX.
std::string needs_text(const ScannedKernel& kernel);

}  // namespace kshim::scan

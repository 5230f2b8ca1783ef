// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/core/text.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::render {

struct VerdictLine {
  core::Tone tone = core::Tone::plain;
  std::string head;  ///< "ok:"; empty where the findings say it
  std::string text;
};
VerdictLine verdict_line(const verbs::Analysis& analysis);

/// The title of a finding with the two values that contradict each other, where it does not name them: "...
/// has no code for RTX 5090 (12.0), only for sm_80 and sm_90".
std::string with_values(std::string title, const core::Finding& finding);

/// "sm_70 sm_75 sm_80 (8.6, 8.9) sm_120": with the GPUs that an entry serves besides its own.
std::string list_text(const advise::FleetList& list);
/// As CMAKE_CUDA_ARCHITECTURES takes it: "70-real;75-real;120".
std::string cmake_text(const advise::FleetPlan& plan);
/// "CUDA 12.8 or 12.9 builds all of it", or why none does.
std::string toolkits_text(const advise::FleetPlan& plan);
/// "node003 (Tesla T4, 7.5), 8 GPUs of node004 (Tesla T4, 7.5) and 12 more GPUs"; empty where none is known.
std::string breaks_text(const advise::FleetPlan& plan);
/// "7.0, 7.5".
std::string names_of(const std::vector<image::ComputeCapability>& gpus);

}  // namespace kshim::render

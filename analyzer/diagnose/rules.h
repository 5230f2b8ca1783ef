// SPDX-License-Identifier: Apache-2.0
// From facts to a cause. Each rule is a pure function; the table has them in the order in which equals are
// preferred.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/diagnose/facts.h"

namespace kshim::diagnose {

constexpr int kInvalidValue = 1;  ///< cudaErrorInvalidValue
/// A diagnosis below this has no ground but its code.
constexpr double kOwnGround = 0.55;

struct Match {
  double confidence = 0;
  std::string because;  ///< a sentence
};

struct RuleRow {
  core::Cause cause;
  std::optional<Match> (*apply)(const Facts& facts);
};
std::span<const RuleRow> rules();

struct Diagnosis {
  core::Cause cause = core::Cause::unknown;
  Match match;
};
/// The rule of highest confidence; Cause::unknown where none is sure enough to be named.
Diagnosis diagnosis_of(const Facts& facts);

/// What a person reads first of a code that says by itself what went wrong; empty for all others.
std::string_view headline_of_code(int code, core::Cause cause);

/// Why one image does or does not serve the device, as a clause for the architecture table.
struct ImageJudgment {
  bool fits = false;
  std::string reason;
  bool would_fit = false;  ///< it does not run, for another reason than its architecture
};
ImageJudgment judge_image(const ImageFact& image, const Facts& facts);
/// What the driver would take.
image::Selection select(const std::vector<ImageFact>& images, const Facts& facts,
                        const image::JitSwitches& switches);

}  // namespace kshim::diagnose

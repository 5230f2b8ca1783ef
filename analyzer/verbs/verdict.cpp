// SPDX-License-Identifier: Apache-2.0
#include "analyzer/verbs/verdict.h"

#include <algorithm>

#include "analyzer/diagnose/rules.h"

namespace kshim::analysis {

std::string_view to_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::gap:
      return "gap";
    case Verdict::failure:
      return "failure";
    case Verdict::no_cuda:
      return "no-cuda";
    case Verdict::blind:
      return "blind";
    case Verdict::incomplete:
      return "incomplete";
  }
  return "";
}

Verdict verdict_of(const Analysis& analysis) {
  const auto any = [&](Severity severity, bool image) {
    return std::any_of(analysis.findings.begin(), analysis.findings.end(), [&](const Finding& finding) {
      return finding.severity == severity && is_image_cause(finding.cause) == image;
    });
  };
  if (any(Severity::error, true)) return Verdict::gap;
  if (any(Severity::error, false)) return Verdict::failure;
  // A latent gap for a target is what was asked for; one for a present GPU, not hit, is information.
  if (any(Severity::warning, true)) return Verdict::gap;
  if (any(Severity::warning, false) &&
      std::any_of(analysis.findings.begin(), analysis.findings.end(), [](const Finding& finding) {
        return finding.cause == Cause::unknown && finding.severity == Severity::warning;
      }))
    return Verdict::incomplete;  // what was asked could not be answered
  if (!analysis.blind.empty()) return Verdict::blind;
  if (analysis.processes.empty()) return Verdict::no_cuda;
  // What is not in a report may be the failure.
  const bool whole =
      std::all_of(analysis.processes.begin(), analysis.processes.end(),
                  [](const ProcessSummary& process) { return process.complete && process.lost == 0; });
  return whole ? Verdict::ok : Verdict::incomplete;
}

Severity worst(const Analysis& analysis) {
  Severity out = Severity::none;
  for (const Finding& finding : analysis.findings) out = std::max(out, finding.severity);
  return out;
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/diagnose/report_findings.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/printable.h"
#include "analyzer/core/text.h"
#include "analyzer/diagnose/aftermath.h"
#include "analyzer/diagnose/failure_finding.h"
#include "analyzer/diagnose/merge.h"
#include "kshim/base/cuda_error.h"

namespace kshim::analysis {
namespace {

// The shim writes each distinct failure once and counts the rest: more than this is no honest report.
constexpr std::size_t kMostFailures = 4096;
// Below, a diagnosis by code alone gives way to an earlier failure that explains it.
constexpr double kOwnGround = 0.55;

// Codes that an ignored earlier failure leaves behind: handles that were never made, names that were never
// loaded, and the runtime's last error read by a later call.
bool may_follow(const FailureRecord& failure, const Diagnosis& diagnosis) {
  if (diagnosis.match.confidence >= kOwnGround) return false;
  return std::any_of(failure.layers.begin(), failure.layers.end(), [](const Layer& layer) {
    return code_has(layer.code, code_trait::handle | code_trait::not_found);
  });
}

// The earlier finding that a failure without ground of its own goes back to: of the same kernel, else of the
// same file, else, where the failure names neither, the last one about images.
Finding* earlier_cause(std::vector<Finding>& findings, const FailureRecord& failure, const Subject& subject) {
  const std::string kernel = demangle(failure.kernel);
  Finding* last = nullptr;
  for (Finding& finding : findings) {
    if (!is_image_cause(finding.cause) || finding.severity != Severity::error) continue;
    if (!kernel.empty() && finding.failed_kernel == kernel) return &finding;
    if (subject.object != nullptr && finding.object == subject.object->path) return &finding;
    last = &finding;
  }
  const bool nameless = kernel.empty() && subject.object == nullptr && subject.module == nullptr;
  return nameless ? last : nullptr;
}

void add_follow_up(const Scene& scene, const FailureRecord& failure, Finding& cause) {
  if (failure.layers.empty()) return;
  const Layer& layer = failure.layers.back();
  cause.evidence.push_back(
      {EvidenceId::later_failure,
       fmt::format("{} answered {} later, which follows from it.", layer.api, layer.code),
       location(scene.report, failure.line),
       {{"call", layer.api}, {"code", std::to_string(layer.code)}}});
  cause.failures.push_back(location(scene.report, failure.line));
}

// With --assume-cc the recorded error belongs to another GPU: what counts is whether the images fit the
// assumed one.
bool would_work(Subject& subject) {
  Facts& facts = subject.facts;
  Facts code_alone = facts;
  code_alone.images.clear();
  code_alone.scope = ImageScope::none;
  if (!is_image_cause(diagnose(code_alone).cause) || facts.scope == ImageScope::none) return false;
  facts.codes.clear();
  return select(facts.images, facts, facts.switches).choice != image::Choice::none;
}

// "A program that merely finds out that there is no GPU leaves no alarm", nor does one that asks for less
// memory, counts GPUs until there is none, or has another compiler's target to fall back on, and ends with 0.
void quieten(const Scene& scene, Finding& finding) {
  if (has_trait(finding.cause, cause_trait::handled) && scene.options.exit_status && ended_well(scene))
    finding.severity = Severity::info;
}

// A library that refuses the GPU by itself, and libraries that do not fit together: the latter are named
// beside the former, but for a cuDNN of which its release says the same and more.
void add_libraries(const Scene& scene, const std::vector<Judged>& judged, std::vector<Finding>& findings) {
  auto refusal = refusing_library(scene, findings);
  const bool cudnn = refusal && basename_of(refusal->object).starts_with("libcudnn");
  if (refusal && !cudnn) findings.push_back(std::move(*refusal));
  add_library_findings(scene, judged, findings);
  const bool told = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.cause == Cause::cudnn_mismatch;
  });
  if (cudnn && !told) findings.push_back(std::move(*refusal));
}

// What a process gives back while it ends: the driver or the context may be gone before it, and nobody is
// harmed. An error of the program's own work has another call, or another code.
bool is_cleanup_at_end(const Scene& scene, const FailureRecord& failure) {
  constexpr int kDeinitialised = 4;
  constexpr int kNotInitialised = 3;
  static constexpr std::string_view kCleanup[] = {"Unload", "Destroy", "Free", "Release"};
  if (!ended_well(scene) || failure.layers.empty()) return false;
  return std::all_of(failure.layers.begin(), failure.layers.end(), [&](const Layer& layer) {
    const bool gone = layer.code == kDeinitialised || layer.code == kNotInitialised ||
                      code_has(layer.code, code_trait::handle);
    return gone && std::any_of(std::begin(kCleanup), std::end(kCleanup), [&](std::string_view word) {
             return layer.api.find(word) != std::string::npos;
           });
  });
}

}  // namespace

std::vector<Finding> findings_of(const Scene& scene) {
  Gathered gathered;
  std::vector<Judged> judged;
  const std::size_t count = std::min(scene.report.failures.size(), kMostFailures);
  for (std::size_t i = 0; i < count; ++i) {
    const FailureRecord& failure = scene.report.failures[i];
    if (is_cleanup_at_end(scene, failure)) continue;
    Subject subject = subject_of(scene, failure);
    if (scene.options.assume_cc && would_work(subject)) continue;
    const Diagnosis diagnosis = diagnose(subject.facts);
    // A compiler that knows the architecture took offence at something else: the program's own business.
    if (subject.facts.compiler && diagnosis.cause == Cause::unknown) continue;
    if (may_follow(failure, diagnosis)) {
      if (Finding* cause = earlier_cause(gathered.findings(), failure, subject)) {
        add_follow_up(scene, failure, *cause);
        continue;
      }
    }
    judged.push_back({&failure, diagnosis.cause, diagnosis.match.confidence});
    Finding finding = finding_of(scene, failure, subject, diagnosis, gathered);
    quieten(scene, finding);
    gathered.add(std::move(finding));
  }
  std::vector<Finding> findings = std::move(gathered.findings());
  for (Finding& finding : stale_errors(scene, judged)) merge_into(findings, std::move(finding));
  if (auto unchecked = unchecked_failure(scene, judged)) findings.push_back(std::move(*unchecked));
  add_libraries(scene, judged, findings);
  for (Finding& finding : compiled_out(scene)) merge_into(findings, std::move(finding));
  std::vector<Finding> latent = latent_gaps(scene, findings);
  add_coverage(scene, latent);
  for (Finding& finding : latent) merge_into(findings, std::move(finding));
  for (Finding& finding : jit_taxes(scene)) findings.push_back(std::move(finding));
  if (scene.report.foreign) keep_free_of_paths(scene.report, findings);
  return findings;
}

}  // namespace kshim::analysis

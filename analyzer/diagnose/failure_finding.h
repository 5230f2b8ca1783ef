// SPDX-License-Identifier: Apache-2.0
// From a judged failure or gap to a finding with evidence, places and advice.
#pragma once
#include "analyzer/diagnose/scene.h"

namespace kshim::diagnose {

/// `told`: the findings of the report so far. What the one that says the same has no room for is left out.
core::Finding finding_of(const Scene& scene, const input::FailureRecord& failure, const InReport& subject,
                         const Diagnosis& diagnosis, const FindingSet& told);
/// Images that are missing although nothing has failed yet; `kernels` as far as they were read, mangled.
/// `confidence`: where more is known than what the images tell.
core::Finding latent_finding(const Scene& scene, const InReport& subject, std::vector<std::string> kernels,
                             bool complete, ModuleShare modules = {}, std::optional<double> confidence = {});

/// Have, images, need: what a finding says about the images of its facts.
void describe_images(const Facts& facts, core::Finding& finding);
/// Sets Finding::about.
void set_about(const Scene& scene, const InReport& subject, core::Finding& finding);

}  // namespace kshim::diagnose

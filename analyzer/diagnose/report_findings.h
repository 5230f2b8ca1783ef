// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analyzer/diagnose/aftermath.h"

namespace kshim::diagnose {

/// All findings of one report, in the order in which things happened.
std::vector<core::Finding> findings_of(const Scene& scene);

/// What is missing although nothing has failed: recorded gaps, loaded files against the present GPUs and the
/// targets. `known` are the findings so far: what they say is not said again.
std::vector<core::Finding> latent_gaps(const Scene& scene, const std::vector<core::Finding>& known);
/// What was asked about GPUs that are not there, and cannot be answered because files are gone. `told`:
/// object and need of what is known to lack code.
std::vector<core::Finding> unjudged(const Scene& scene, const std::vector<image::ComputeCapability>& wanted,
                                    const std::set<std::pair<std::string, std::string>>& told);
/// Of what `latent` says about targets, what this run launched; the rest becomes information. Nothing without
/// coverage records.
void add_coverage(const Scene& scene, std::vector<core::Finding>& latent);
/// mixed-cuda-libraries, cudnn-mismatch: added to `known`, where what nothing else explains becomes theirs.
void add_library_findings(const Scene& scene, const std::vector<Judged>& judged,
                          std::vector<core::Finding>& known);
/// compiled-out: launched or failed kernels whose image for this GPU has a stub, and another image the
/// whole.
std::vector<core::Finding> compiled_out(const Scene& scene);
/// jit-tax: what the process spent on compiling PTX, by file.
std::vector<core::Finding> jit_taxes(const Scene& scene);
/// How long the driver compiled what a sentence of these is about.
std::string duration_clause(double milliseconds);

}  // namespace kshim::diagnose

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyzer/analysis/finding.h"

namespace kshim::analysis {

/// Whether two findings say the same: one cause, one file, one need, and for what is not about images one
/// code.
bool says_the_same(const Finding& a, const Finding& b);
/// Adds the finding, or what is new in it to the one that says the same: kernels, devices, evidence, count.
void merge_into(std::vector<Finding>& findings, Finding&& finding);
/// Most severe first, then most certain, then most frequent.
void sort_findings(std::vector<Finding>& findings);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// What is said of a finding in a line or a clause.
#pragma once
#include <span>

#include "analyzer/core/finding.h"

namespace kshim::analysis {

/// "saxpy cannot run: build/saxpy has no code for NVIDIA GeForce GTX 1080 (6.1)"
std::string title_of(const Finding& finding);
/// "sm_75" of each GPU that was asked about with --target, where the finding is about such.
std::vector<std::string> targets_of(const Finding& finding);
/// A headline that counts what there is needs no "probably" and no percentage: it says itself how much is
/// known.
bool counts(const Finding& finding);
/// "train.py:17, in step"
std::string place_text(const Place& place);
/// The phrase that a person reads first, with nothing left to fill in: for programs.
std::string headline_of(const Finding& finding);
/// ", 3 times; 2 other calls failed with it": empty for what happened once.
std::string how_often(const Finding& finding);
/// title_of() as one; the name of a file that it begins with stays as it is.
std::string title_sentence(const Finding& finding);
/// error, warning, note
std::string_view kind_of(const Finding& finding);
/// "2 errors and 1 warning"; empty without findings of these.
std::string counted_findings(std::span<const Finding> findings);
/// The title and the fixes as plain lines.
std::string message_text(const Finding& finding);

}  // namespace kshim::analysis

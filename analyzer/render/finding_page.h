// SPDX-License-Identifier: Apache-2.0
// What is said of one finding, of all of them, and of the plans for a fleet.
#pragma once

#include "analyzer/render/document.h"
#include "analyzer/render/json_finding.h"

namespace kshim::render {

/// "saxpy cannot run: build/saxpy has no code for NVIDIA GeForce GTX 1080 (6.1)"
std::string title_of(const core::Finding& finding);
/// "sm_75" of each GPU that was asked about with --target, where the finding is about such.
std::vector<std::string> targets_of(const core::Finding& finding);
/// A headline that counts what there is needs no "probably" and no percentage: it says itself how much is
/// known.
bool counts(const core::Finding& finding);
/// "cuLibraryGetKernel returned 209 CUDA_ERROR_NO_BINARY_FOR_GPU, 3 times"; empty where no call failed.
Line call_of(const core::Finding& finding);
/// "train.py:17, in step"
std::string place_text(const core::Place& place);
/// The phrase that a person reads first, with nothing left to fill in: for programs.
std::string headline_of(const core::Finding& finding);
/// ", 3 times; 2 other calls failed with it": empty for what happened once.
std::string how_often(const core::Finding& finding);
/// title_of() as one; the name of a file that it begins with stays as it is.
std::string title_sentence(const core::Finding& finding);
/// error, warning, note
std::string_view kind_of(const core::Finding& finding);
/// "2 errors and 1 warning"; empty without findings of these.
std::string counted_findings(std::span<const core::Finding> findings);
/// The title and the fixes as plain lines.
std::string message_text(const core::Finding& finding);

/// All of it: what is wrong, what to do, the facts, the evidence.
void write_finding(const core::Finding& finding, std::size_t number, Document& document);
/// The fixes, each with a heading, and what will not help.
void write_fixes(const core::Finding& finding, Document& document);
/// The titles of the findings, as many as the document has sections for.
void write_contents(std::span<const core::Finding> findings, const std::string& head, Document& document);
/// All of them with all there is to them, as many as the document takes.
void write_findings(std::span<const core::Finding> findings, Document& document);
/// "and 3 more findings: --format json has them all".
void write_left_out(std::size_t count, std::string_view noun, Document& document);

/// The plans that say more than the fix of the finding does; nothing without such.
void write_fleet(const std::vector<advise::FleetPlan>& plans, Document& document);
template <>
Json to_json(const advise::FleetPlan& plan);

}  // namespace kshim::render

// SPDX-License-Identifier: Apache-2.0
// One finding, or all of them, in a document.
#pragma once

#include "analyzer/core/finding.h"
#include "analyzer/render/document.h"

namespace kshim::analysis {

/// brief: title, place and the first fix. shared: what several findings leave room for. full: all a person
/// needs. everything: without limits on lists.
enum class Detail : std::uint8_t { brief, shared, full, everything };
void write_finding(const Finding& finding, std::size_t number, Detail detail, Document& document);
/// The fixes, each with a heading, and what will not help.
void write_fixes(const Finding& finding, Document& document);
/// The titles of the findings, as many as the document has sections for.
void write_contents(std::span<const Finding> findings, const std::string& head, Document& document);
/// All of them with all there is to them, as many as the document takes.
void write_findings(std::span<const Finding> findings, Detail detail, Document& document);
/// "and 3 more findings: --format json has them all".
void write_left_out(std::size_t count, std::string_view noun, Document& document);

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// The formats that render() of analysis.h chooses from:
// - text: for a terminal
// - markdown: GitHub's, to paste into an issue, short unless verbose
// - html: a page that needs no other file
// - json: kshim-analysis/1, as docs/schema/analysis.json describes it, pure ASCII
// - sarif: SARIF 2.1.0
// - junit: JUnit's XML, a suite a process, a case a finding
// - github: workflow commands; empty where there is nothing to say
// What is not empty ends with a newline.
#pragma once
#include <string>

#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

/// As text, Markdown or HTML.
std::string render_page(const Analysis& analysis, Format format, const RenderOptions& options);
std::string render_json(const Analysis& analysis, const RenderOptions& options);
std::string render_sarif(const Analysis& analysis);
std::string render_junit(const Analysis& analysis);
std::string render_github(const Analysis& analysis);

}  // namespace kshim::analysis

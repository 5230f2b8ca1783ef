// SPDX-License-Identifier: Apache-2.0
// The formats that render() of analysis.h chooses from:
// - text: for a terminal
// - json: kshim-analysis/1, as docs/schema/analysis.json describes it, pure ASCII
// - markdown: GitHub's, to paste into an issue, short unless verbose
// - html: a page that needs no other file
// - sarif: SARIF 2.1.0
// - junit: JUnit's XML, a suite a process, a case a finding
// - github: workflow commands; empty where there is nothing to say
// What is not empty ends with a newline.
#pragma once
#include <string>

#include "analyzer/verbs/analysis.h"

namespace kshim::analysis {

#define KSHIM_FORMAT(id) std::string render_##id(const Analysis& analysis, const RenderOptions& options);
#include "analyzer/render/formats.def"
#undef KSHIM_FORMAT

}  // namespace kshim::analysis

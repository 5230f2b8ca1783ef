// SPDX-License-Identifier: Apache-2.0
// The formats that render() of analysis.h chooses from.
#pragma once
#include <string>

#include "analyzer/analysis/analysis.h"

namespace kshim::analysis {

std::string render_text(const Analysis& analysis, const RenderOptions& options);
/// kshim-analysis/1, as docs/schema/analysis.json describes it: pure ASCII, ends with a newline.
std::string render_json(const Analysis& analysis);

}  // namespace kshim::analysis

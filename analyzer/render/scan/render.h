// SPDX-License-Identifier: Apache-2.0
// A scan in the formats of analyzer/render/formats.def; what each is, analyzer/render/render.h says. The JSON
// is kshim-scan/1, as docs/schema/scan.json describes it.
#pragma once
#include <string>

#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

std::string render(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options);

/// As text, Markdown or HTML.
std::string render_page(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options);
std::string render_json(const Scan& scan);
std::string render_junit(const Scan& scan);

}  // namespace kshim::scan

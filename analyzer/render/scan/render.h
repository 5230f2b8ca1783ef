// SPDX-License-Identifier: Apache-2.0
// A scan in the formats of analyzer/core/formats.def; what each is, analyzer/render/render.h says. The JSON
// is kshim-scan/1, as docs/schema/scan.json describes it.
#pragma once

#include "analyzer/render/formats.h"
#include "analyzer/verbs/scan.h"

namespace kshim::scan {

std::string render(const Scan& scan, analysis::Format format, const analysis::RenderOptions& options);

#define KSHIM_FORMAT(id, writer)                                         \
  std::string render_##writer(const Scan& scan, analysis::Format format, \
                              const analysis::RenderOptions& options);
#include "analyzer/core/formats.def"
#undef KSHIM_FORMAT

}  // namespace kshim::scan

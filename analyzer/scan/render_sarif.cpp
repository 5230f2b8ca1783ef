// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/sarif.h"
#include "analyzer/scan/render.h"
#include "analyzer/scan/render_place.h"

namespace kshim::scan {

std::string render_sarif(const Scan& scan, const analysis::RenderOptions& /*options*/) {
  return analysis::sarif_log({.findings = placed(scan), .notes = scan.notes, .failures = {}});
}

}  // namespace kshim::scan

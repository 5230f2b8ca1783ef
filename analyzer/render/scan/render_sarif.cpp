// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/sarif.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/scan/render_place.h"

namespace kshim::scan {

std::string render_sarif(const Scan& scan, const analysis::RenderOptions& /*options*/) {
  analysis::SarifRun run{.id = "kshim-scan/", .findings = {}, .notes = {}, .failures = {}};
  run.findings = placed(scan, run.root);
  (scan.named_unread ? run.failures : run.notes) = scan.notes;
  return analysis::sarif_log(run);
}

}  // namespace kshim::scan

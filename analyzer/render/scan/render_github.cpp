// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/github.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/scan/render_place.h"

namespace kshim::scan {

std::string render_github(const Scan& scan, const analysis::RenderOptions& /*options*/) {
  const auto root = analysis::SourceRoot::of_process();
  return analysis::github_commands(placed(scan, root), root, {}, scan.notes);
}

}  // namespace kshim::scan

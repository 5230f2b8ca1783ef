// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/markdown_page.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/scan/render_share.h"

namespace kshim::scan {

std::string render_markdown(const Scan& scan, const analysis::RenderOptions& options) {
  analysis::MarkdownPage page(options.verbose);
  share_scan(scan, options.full, page);
  return std::move(page).take();
}

}  // namespace kshim::scan

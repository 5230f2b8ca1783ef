// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/html_page.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/scan/render_share.h"

namespace kshim::scan {

std::string render_html(const Scan& scan, const analysis::RenderOptions& options) {
  analysis::HtmlPage page("kshim scan", options.verbose);
  share_scan(scan, options.full, page);
  return std::move(page).take();
}

}  // namespace kshim::scan

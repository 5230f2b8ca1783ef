// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/html_page.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"
#include "analyzer/render/share_analysis.h"

namespace kshim::analysis {

std::string render_html(const Analysis& analysis, const RenderOptions& options) {
  HtmlPage page("kshim", options.verbose);
  share_analysis(for_sharing(analysis, options.full), page);
  return std::move(page).take();
}

}  // namespace kshim::analysis

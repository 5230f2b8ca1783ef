// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/markdown_page.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"
#include "analyzer/render/share_analysis.h"

namespace kshim::analysis {

std::string render_markdown(const Analysis& analysis, const RenderOptions& options) {
  MarkdownPage page(options.verbose);
  share_analysis(for_sharing(analysis, options.full), page);
  return std::move(page).take();
}

}  // namespace kshim::analysis

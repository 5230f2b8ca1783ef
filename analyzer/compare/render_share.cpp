// SPDX-License-Identifier: Apache-2.0
// The diff as Markdown and as HTML.
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/compare/render.h"
#include "analyzer/render/html_page.h"
#include "analyzer/render/markdown_page.h"
#include "analyzer/render/share.h"
#include "analyzer/render/share_analysis.h"
#include "analyzer/render/share_finding.h"

namespace kshim::diff {
namespace {

using analysis::Line;
using analysis::SharePage;
using analysis::Style;

class Sharer {
 public:
  Sharer(const Diff& diff, bool full, SharePage& page) : diff_(diff), full_(full), page_(page) {}

  void share() {
    page_.heading(1, {{fmt::format("kshim diff: {}", verdict_of(diff_))}});
    page_.paragraph({{clean(summary_of(diff_) + ".")}});
    page_.table({}, {{{{"A"}}, {analysis::code(clean(diff_.a.path))}},
                     {{{"B"}}, {analysis::code(clean(diff_.b.path))}}});
    std::vector<std::vector<Line>> rows;
    const std::size_t shown = std::min(diff_.changes.size(), page_.limits().rows);
    for (std::size_t i = 0; i < shown; ++i) rows.push_back(row(diff_.changes[i]));
    if (diff_.changes.size() > shown)
      rows.push_back({{{fmt::format("and {} more", diff_.changes.size() - shown)}}, {}, {}});
    if (!rows.empty()) {
      page_.heading(2, {{"Changes"}});
      page_.table({"", "File", "What"}, rows);
    }
    kernels();
    findings("As before", diff_.stayed);
    if (!diff_.notes.empty()) {
      std::vector<std::string> notes;
      for (const std::string& note : diff_.notes) notes.push_back(clean(note));
      page_.heading(2, {{"Notes"}});
      share_list(notes, false, page_);
    }
    analysis::share_footer(page_);
  }

 private:
  std::string clean(const std::string& text) const { return analysis::for_sharing(text, full_); }

  std::vector<Line> row(const Change& change) const {
    const Style style = change.effect == Effect::lost     ? Style::bad
                        : change.effect == Effect::gained ? Style::good
                                                          : Style::dim;
    const std::string name = change.pair ? name_of(diff_.pairs[*change.pair]) : "";
    return {{{std::string(word_of(change)), style}}, {analysis::code(clean(name))}, {{clean(change.text)}}};
  }
  void kernels() {
    for (const Change& change : diff_.changes) {
      if (change.kernels.size() < 2) continue;
      page_.open_details(fmt::format("{} kernels: {}", change.kernels.size(), to_name(change.effect)));
      std::vector<std::string> names;
      for (const std::string& kernel : change.kernels) names.push_back(clean(kernel));
      share_list(names, true, page_);
      page_.close_details();
    }
  }
  void findings(const char* title, const std::vector<Finding>& list) {
    if (list.empty()) return;
    std::vector<std::string> items;
    for (const Finding& finding : list) items.push_back(clean(sentence_of(finding)));
    page_.heading(2, {{title}});
    share_list(items, false, page_);
  }

  const Diff& diff_;
  bool full_;
  SharePage& page_;
};

}  // namespace

std::string render_markdown(const Diff& diff, const analysis::RenderOptions& options) {
  analysis::MarkdownPage page(options.verbose);
  Sharer(diff, options.full, page).share();
  return std::move(page).take();
}

std::string render_html(const Diff& diff, const analysis::RenderOptions& options) {
  analysis::HtmlPage page("kshim diff", options.verbose);
  Sharer(diff, options.full, page).share();
  return std::move(page).take();
}

}  // namespace kshim::diff

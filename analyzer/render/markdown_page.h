// SPDX-License-Identifier: Apache-2.0
// GitHub-flavoured Markdown, to be pasted into an issue: nothing foreign may become markup, a mention, a link
// to an issue or a picture.
#pragma once
#include "analyzer/render/share_page.h"

namespace kshim::analysis {

class MarkdownPage final : public SharePage {
 public:
  explicit MarkdownPage(bool unlimited) : unlimited_(unlimited) {}

  ShareLimits limits() const override;
  void heading(unsigned level, const Line& text) override;
  void paragraph(const Line& text) override;
  void list(const std::vector<Line>& items) override;
  void table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) override;
  void commands(const std::vector<std::string>& commands) override;
  void open_details(std::string_view summary) override;
  void close_details() override;

  std::string take() && { return std::move(out_); }

 private:
  void block(std::string_view text);
  bool unlimited_;
  std::string out_;
};

}  // namespace kshim::analysis

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
  void open_finding(std::size_t number, std::string_view kind, std::string_view title) override;
  void close_finding() override {}
  void open_details(std::string_view summary) override;
  void close_details() override;

  /// Unless unlimited, what GitHub takes of an issue or a comment: what is folded goes first, the last before
  /// the others, then the end; a note says so.
  std::string take() &&;

 private:
  struct Block {
    std::string text;
    std::size_t details = 0;  ///< number of the folded part that it belongs to, from 1
  };
  void block(std::string_view text);
  void shorten();
  std::size_t size() const;
  bool unlimited_;
  bool folded_ = false;
  std::size_t details_ = 0;  ///< folded parts so far
  std::vector<Block> blocks_;
};

}  // namespace kshim::analysis

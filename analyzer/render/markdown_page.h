// SPDX-License-Identifier: Apache-2.0
// GitHub-flavoured Markdown, to be pasted into an issue: nothing foreign may become markup, a mention, a link
// to an issue or a picture.
#pragma once
#include "analyzer/render/document.h"

namespace kshim::analysis {

class MarkdownPage final : public Document {
 public:
  explicit MarkdownPage(bool unlimited, Cleaner clean = harmless_cleaner())
      : Document(std::move(clean)), unlimited_(unlimited) {}

  Limits limits() const override;
  void close_details() override;

  /// Unless unlimited, what GitHub takes of an issue or a comment: what is folded goes first, the last before
  /// the others, then the end; a note says so.
  std::string take() &&;

 private:
  struct Block {
    std::string text;
    std::size_t details = 0;  ///< number of the folded part that it belongs to, from 1
  };
  void put_heading(unsigned level, const Line& text) override;
  void put_paragraph(const Line& text, unsigned indent, unsigned hang) override;
  void put_list(const std::vector<Line>& items) override;
  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& label) override;
  void put_commands(const std::vector<std::string>& commands) override;
  void put_finding(std::size_t number, std::string_view kind, const std::string& title,
                   bool further) override;
  void put_details(const std::string& summary) override;

  void block(std::string_view text);
  void shorten();
  std::size_t size() const;
  bool unlimited_;
  bool folded_ = false;
  std::size_t details_ = 0;  ///< folded parts so far
  std::vector<Block> blocks_;
};

}  // namespace kshim::analysis

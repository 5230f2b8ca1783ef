// SPDX-License-Identifier: Apache-2.0
// One page of HTML that needs nothing but itself: no script, no picture, no font, and a policy that forbids
// them.
#pragma once
#include <initializer_list>
#include <utility>

#include "analyzer/render/share_page.h"

namespace kshim::analysis {

/// Elements opened and closed in order, text escaped. Tags and attribute names are ours.
class HtmlWriter {
 public:
  using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  void open(const char* tag, Attributes attributes = {});
  void close();
  void text(std::string_view text);
  /// open, text, close
  void element(const char* tag, std::string_view text, Attributes attributes = {});
  /// <meta ...>: without content
  void empty(const char* tag, Attributes attributes);
  /// The style sheet: the only text that is not escaped, because the browser would not read it otherwise.
  void style(const char* sheet);
  std::size_t depth() const { return open_.size(); }
  std::string take() &&;

 private:
  void begin(const char* tag, Attributes attributes);
  std::vector<const char*> open_;
  std::string out_;
};

class HtmlPage final : public SharePage {
 public:
  explicit HtmlPage(std::string_view title);

  ShareLimits limits() const override;
  void heading(unsigned level, const Line& text) override;
  void paragraph(const Line& text) override;
  void list(const std::vector<Line>& items) override;
  void table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) override;
  void commands(const std::vector<std::string>& commands) override;
  void open_details(std::string_view summary) override;
  void close_details() override;

  std::string take() && { return std::move(html_).take(); }

 private:
  void line(const Line& text);
  HtmlWriter html_;
};

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// One page of HTML that needs nothing but itself: no picture, no font, one sheet and one script (page.css,
// page.js), and a policy that forbids all but these two by their hashes. Without scripts it is as complete.
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
  /// The sheet and the script: the only texts that are not escaped, because the browser would not read them
  /// otherwise.
  void asset(const char* tag, const char* text);
  std::size_t depth() const { return open_.size(); }
  std::string take() &&;

 private:
  void begin(const char* tag, Attributes attributes);
  std::vector<const char*> open_;
  std::string out_;
};

class HtmlPage final : public SharePage {
 public:
  HtmlPage(std::string_view title, bool unlimited);

  ShareLimits limits() const override;
  bool has_links() const override { return true; }
  void heading(unsigned level, const Line& text) override;
  void paragraph(const Line& text) override;
  void list(const std::vector<Line>& items) override;
  void table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) override;
  void commands(const std::vector<std::string>& commands) override;
  void open_finding(std::size_t number, std::string_view kind, std::string_view title) override;
  void close_finding() override;
  void contents(const std::vector<std::pair<std::string_view, std::string>>& kinds_and_titles) override;
  void open_details(std::string_view summary) override;
  void close_details() override;

  std::string take() &&;

 private:
  void line(const Line& text);
  void span(const Span& span);
  void row(const std::vector<Line>& cells, bool facts);
  void badge(std::string_view kind);
  HtmlWriter html_;
  std::string section_;  ///< the last heading, which names the tables under it
  std::size_t top_ = 0;  ///< elements that are open around all findings
  bool unlimited_;
};

/// A hash in hexadecimal as base64, as a policy names it.
std::string base64_of_hex(std::string_view hex);

}  // namespace kshim::analysis

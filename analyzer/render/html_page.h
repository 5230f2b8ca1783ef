// SPDX-License-Identifier: Apache-2.0
// One page of HTML that needs nothing but itself: no picture, no font, one sheet and one script (page.css,
// page.js), and a policy that forbids all but these two by their hashes. Without scripts it is as complete.
#pragma once
#include <initializer_list>

#include "analyzer/render/document.h"

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

class HtmlPage final : public Document {
 public:
  HtmlPage(std::string_view title, bool unlimited, Cleaner clean);

  Limits limits() const override;
  bool has_links() const override { return true; }
  void close_finding() override;
  void close_details() override;

  std::string take() &&;

 private:
  void put_heading(unsigned level, const Line& text) override;
  void put_paragraph(const Line& text, unsigned indent, unsigned hang) override;
  void put_list(const std::vector<Line>& items) override;
  void put_table(const std::vector<std::string>& head, const std::vector<Row>& rows,
                 const std::string& label) override;
  void put_commands(const std::vector<std::string>& commands) override;
  void put_finding(std::size_t number, std::string_view kind, const std::string& title,
                   bool further) override;
  void put_details(const std::string& summary) override;

  void line(const Line& text);
  void span(const Span& span);
  void row(const Row& cells, bool facts);
  void badge(std::string_view kind);
  HtmlWriter html_;
  std::string section_;  ///< the last heading, which names the tables under it
  std::string title_;
  std::vector<std::string> parts_;  ///< headings of the page's parts
  std::size_t top_ = 0;             ///< elements that are open around all findings
  bool unlimited_;
};

/// A hash in hexadecimal as base64, as a policy names it.
std::string base64_of_hex(std::string_view hex);

}  // namespace kshim::analysis

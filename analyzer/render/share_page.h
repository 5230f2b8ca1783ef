// SPDX-License-Identifier: Apache-2.0
// What a shared page is made of, for whoever fills it: Markdown and HTML are written behind it. Everything
// given to it is foreign text unless it says otherwise; the page escapes it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kshim::analysis {

/// code: names of files, kernels, calls. good and bad: marks.
enum class Style : std::uint8_t { plain, code, strong, good, bad, dim, number };
struct Span {
  std::string text;
  Style style = Style::plain;
  std::string hover = {};   ///< more about it, for pages that can; said elsewhere on the page as well
  std::size_t finding = 0;  ///< the number of the finding that says it, from 1; 0 for none
};
using Line = std::vector<Span>;

inline Span code(std::string text) { return {std::move(text), Style::code}; }
inline Span strong(std::string text) { return {std::move(text), Style::strong}; }

/// How much of long lists a page shows.
struct ShareLimits {
  std::size_t rows = 0;      ///< of any table or list
  std::size_t columns = 0;   ///< of any name
  std::size_t findings = 0;  ///< with all there is to them
  std::size_t kernels = 0;   ///< of all tables of kernels together
};

class SharePage {
 public:
  SharePage() = default;
  SharePage(const SharePage&) = delete;
  SharePage& operator=(const SharePage&) = delete;
  virtual ~SharePage() = default;

  virtual ShareLimits limits() const = 0;
  /// Whether Span::hover and Span::finding come to something.
  virtual bool has_links() const { return false; }
  virtual void heading(unsigned level, const Line& text) = 0;
  virtual void paragraph(const Line& text) = 0;
  virtual void list(const std::vector<Line>& items) = 0;
  /// An empty head: a table of facts, whose first column names them.
  virtual void table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) = 0;
  virtual void commands(const std::vector<std::string>& commands) = 0;
  /// A finding with its number, from 1, and what is between them. `kind`: error, warning, note.
  virtual void open_finding(std::size_t number, std::string_view kind, std::string_view title) = 0;
  virtual void close_finding() = 0;
  /// Titles of the findings that follow, from number 1 on, where the page has links.
  virtual void contents(const std::vector<std::pair<std::string_view, std::string>>& kinds_and_titles) {
    static_cast<void>(kinds_and_titles);
  }
  /// What is folded away until it is asked for. Not nested.
  virtual void open_details(std::string_view summary) = 0;
  virtual void close_details() = 0;
};

}  // namespace kshim::analysis

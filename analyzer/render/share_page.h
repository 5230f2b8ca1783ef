// SPDX-License-Identifier: Apache-2.0
// What a shared page is made of, for whoever fills it: Markdown and HTML are written behind it. Everything
// given to it is foreign text unless it says otherwise; the page escapes it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kshim::analysis {

/// code: names of files, kernels, calls. good and bad: marks.
enum class Style : std::uint8_t { plain, code, strong, good, bad, dim, number };
struct Span {
  std::string text;
  Style style = Style::plain;
};
using Line = std::vector<Span>;

inline Span code(std::string text) { return {std::move(text), Style::code}; }
inline Span strong(std::string text) { return {std::move(text), Style::strong}; }

/// How much of long lists a page shows.
struct ShareLimits {
  std::size_t rows = 0;     ///< of any table or list
  std::size_t columns = 0;  ///< of any name
};

class SharePage {
 public:
  SharePage() = default;
  SharePage(const SharePage&) = delete;
  SharePage& operator=(const SharePage&) = delete;
  virtual ~SharePage() = default;

  virtual ShareLimits limits() const = 0;
  virtual void heading(unsigned level, const Line& text) = 0;
  virtual void paragraph(const Line& text) = 0;
  virtual void list(const std::vector<Line>& items) = 0;
  /// An empty head: a table of facts, whose first column names them.
  virtual void table(const std::vector<std::string>& head, const std::vector<std::vector<Line>>& rows) = 0;
  virtual void commands(const std::vector<std::string>& commands) = 0;
  /// What is folded away until it is asked for. Not nested.
  virtual void open_details(std::string_view summary) = 0;
  virtual void close_details() = 0;
};

}  // namespace kshim::analysis

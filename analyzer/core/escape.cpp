// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/escape.h"

#include <fmt/core.h>

namespace kshim::analysis {

std::string escape_markup(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool begin = true;  // of a line, blanks and what may be one aside
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool first = begin;
    begin = c == '\n' || (begin && (c <= ' ' || c == '\x7f'));
    switch (c) {
      case ':':
        out += first && text.substr(i, 2) == "::" ? "&#58;" : ":";
        break;
      case '#':
        out += text.substr(i, 3) == "##[" ? "&#35;" : "#";
        break;
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string file_uri(std::string_view path) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace kshim::analysis

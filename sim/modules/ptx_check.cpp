// SPDX-License-Identifier: Apache-2.0
#include "modules/ptx_check.h"

#include <string>

namespace kshim::sim {

std::size_t first_bad_line(std::string_view ptx) {
  std::string open;
  std::size_t line = 1;
  for (std::size_t at = 0; at < ptx.size() && ptx[at] != '\0'; ++at) {
    const char c = ptx[at];
    if (c == '\n') ++line;
    if (c == '/' && ptx.substr(at, 2) == "//") {
      at = ptx.find('\n', at);
      if (at == std::string_view::npos) break;
      ++line;
    } else if (c == '/' && ptx.substr(at, 2) == "/*") {
      const std::size_t end = ptx.find("*/", at + 2);
      if (end == std::string_view::npos) return line;
      for (; at < end + 1; ++at) line += ptx[at] == '\n' ? 1U : 0U;
    } else if (c == '"') {
      const std::size_t end = ptx.find_first_of("\"\n", at + 1);
      if (end == std::string_view::npos || ptx[end] == '\n') return line;
      at = end;
    } else if (c == '{' || c == '(' || c == '[') {
      open += c;
    } else if (c == '}' || c == ')' || c == ']') {
      const char partner = c == '}' ? '{' : c == ')' ? '(' : '[';
      if (open.empty() || open.back() != partner) return line;
      open.pop_back();
    }
  }
  return open.empty() ? 0 : line;
}

}  // namespace kshim::sim

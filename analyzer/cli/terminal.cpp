// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "analyzer/core/text.h"

namespace kshim::cli {
namespace {

/// `colour`: a parameter of ECMA-48's "select graphic rendition".
void print_line(std::string_view word, std::string_view colour, std::string_view text) {
  const bool wanted = wants_colour(STDERR_FILENO);
  fmt::print(stderr, "kshim: {}{}{} {}\n", wanted ? fmt::format("\033[{}m", colour) : "", word,
             wanted ? "\033[0m" : "",
             analysis::no_command(analysis::harmless(text)));  // arguments and reports are quoted in it
}

}  // namespace

bool wants_colour(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  if (no_colour != nullptr && *no_colour != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fd) == 1;
}

unsigned terminal_width(int fd) {
  constexpr unsigned kDefault = 80;
  constexpr unsigned kLeast = 40;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    return std::max<unsigned>(size.ws_col, kLeast);
  }
  const char* columns = std::getenv("COLUMNS");
  if (columns != nullptr) {
    const unsigned long width = std::strtoul(columns, nullptr, 10);
    if (width >= kLeast && width < 10000) return static_cast<unsigned>(width);
  }
  return kDefault;
}

bool wants_unicode() {
  // The first of them that is set and not empty decides, as setlocale(3) has it.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    return strcasestr(value, "utf-8") != nullptr || strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

void print_error(std::string_view text) { print_line("error:", "1;31", text); }
void print_errors(const std::vector<std::string>& texts, bool all) {
  constexpr std::size_t kMost = 10;
  const std::size_t shown = all ? texts.size() : std::min(kMost, texts.size());
  for (std::size_t i = 0; i < shown; ++i) print_error(analysis::harmless(texts[i]));
  if (shown < texts.size()) print_error(fmt::format("and {} more; see them with -v", texts.size() - shown));
}
void print_warning(std::string_view text) { print_line("warning:", "1;33", text); }
void print_note(std::string_view text) { print_line("note:", "36", text); }

}  // namespace kshim::cli

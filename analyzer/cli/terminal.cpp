// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "analyzer/core/text.h"

namespace kshim::cli {
namespace {

/// `color`: a parameter of ECMA-48's "select graphic rendition".
void print_line(std::string_view word, std::string_view color, std::string_view text) {
  const bool wanted = wants_color(STDERR_FILENO);
  fmt::print(stderr, "kshim: {}{}{} {}\n", wanted ? fmt::format("\033[{}m", color) : "", word,
             wanted ? "\033[0m" : "",
             core::no_command(core::sanitize(text)));  // arguments and reports are quoted in it
}

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr unsigned kWidest = 40;

// What wipes the bar away, for a handler that may call little more than write(2); its size is 0 where no bar
// is drawn.
std::array<char, 512> wipe_text;
std::atomic<std::size_t> wipe_size{0};

void wipe_and_go(int signal) {
  const ssize_t done = ::write(STDERR_FILENO, wipe_text.data(), wipe_size.load());
  static_cast<void>(done);
  ::raise(signal);  // the default again (SA_RESETHAND), as soon as the handler returns
}

void wipe_on_interrupt(bool on) {
  struct sigaction known {};
  if (::sigaction(SIGINT, nullptr, &known) != 0) return;
  struct sigaction wanted {};
  wanted.sa_handler = on ? wipe_and_go : SIG_DFL;
  wanted.sa_flags = static_cast<int>(SA_RESETHAND);
  // A process that ignores it, or has a handler, keeps that.
  if (known.sa_handler == (on ? SIG_DFL : wipe_and_go)) ::sigaction(SIGINT, &wanted, nullptr);
}

}  // namespace

bool wants_color(int fd) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::string_view(term) == "dumb") return false;
  return isatty(fd) == 1;
}

unsigned terminal_width(int fd) {
  constexpr unsigned kDefault = 80;
  constexpr unsigned kMin = 40;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    return std::max<unsigned>(size.ws_col, kMin);
  }
  const char* columns = std::getenv("COLUMNS");
  const unsigned width = core::first_number<unsigned>(columns == nullptr ? "" : columns).value_or(0);
  return width >= kMin && width < 10000 ? width : kDefault;
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
  constexpr std::size_t kMax = 10;
  const std::size_t shown = all ? texts.size() : std::min(kMax, texts.size());
  for (std::size_t i = 0; i < shown; ++i) print_error(core::sanitize(texts[i]));
  if (shown < texts.size()) print_error(fmt::format("and {} more; see them with -v", texts.size() - shown));
}
void print_warning(std::string_view text) { print_line("warning:", "1;33", text); }
void print_note(std::string_view text) { print_line("note:", "36", text); }

ProgressBar::ProgressBar(std::string what, std::chrono::milliseconds patience)
    : what_(std::move(what)),
      next_(std::chrono::steady_clock::now() + patience),
      on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (!drawn_) return;
  wipe_on_interrupt(false);
  wipe_size = 0;
  fmt::print(stderr, "\r{}\r", std::string(terminal_width(STDERR_FILENO) - 1, ' '));
  std::fflush(stderr);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!on_terminal_ || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const unsigned width = terminal_width(STDERR_FILENO);
  if (!drawn_) {
    const std::size_t blanks = std::min<std::size_t>(width - 1, wipe_text.size() - 2);
    wipe_text.fill(' ');
    wipe_text[0] = wipe_text[blanks + 1] = '\r';
    wipe_size = blanks + 2;
    wipe_on_interrupt(true);
  }
  drawn_ = true;
  const unsigned room = width - std::min(width, static_cast<unsigned>(what_.size()) + 9);
  const unsigned bar = std::min(kWidest, room);
  const auto filled = static_cast<unsigned>(part * bar);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f}%", what_, std::string(filled, '#'), std::string(bar - filled, ' '),
             part * 100);
  std::fflush(stderr);
}

}  // namespace kshim::cli

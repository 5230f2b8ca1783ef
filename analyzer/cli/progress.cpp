// SPDX-License-Identifier: Apache-2.0
#include "analyzer/cli/progress.h"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <utility>

#include "analyzer/cli/terminal.h"

namespace kshim::cli {
namespace {

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
  // Who ignores it, or has a handler, keeps that.
  if (known.sa_handler == (on ? SIG_DFL : wipe_and_go)) ::sigaction(SIGINT, &wanted, nullptr);
}

}  // namespace

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

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "analyzer/terminal.h"

namespace kshim::cli {
namespace {

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr unsigned kWidest = 40;

}  // namespace

ProgressBar::ProgressBar(std::string what, std::chrono::milliseconds patience)
    : what_(std::move(what)),
      next_(std::chrono::steady_clock::now() + patience),
      on_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (!drawn_) return;
  fmt::print(stderr, "\r{}\r", std::string(terminal_width(STDERR_FILENO) - 1, ' '));
  std::fflush(stderr);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  if (!on_terminal_ || total == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  drawn_ = true;
  const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const unsigned width = terminal_width(STDERR_FILENO);
  const unsigned room = width - std::min(width, static_cast<unsigned>(what_.size()) + 9);
  const unsigned bar = std::min(kWidest, room);
  const auto filled = static_cast<unsigned>(part * bar);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f}%", what_, std::string(filled, '#'), std::string(bar - filled, ' '),
             part * 100);
  std::fflush(stderr);
}

}  // namespace kshim::cli

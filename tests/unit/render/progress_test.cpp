// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "analyzer/cli/terminal.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

// What `work` writes to a terminal of 80 columns.
std::string on_terminal(const std::function<void()>& work) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = 80;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    work();
    _exit(0);
  }
  std::string out;
  char block[4096];
  for (ssize_t got = read(terminal, block, sizeof block); got > 0;
       got = read(terminal, block, sizeof block)) {
    out.append(block, static_cast<std::size_t>(got));
  }
  close(terminal);
  waitpid(child, nullptr, 0);
  return out;
}

constexpr std::chrono::milliseconds kAtOnce{0};
constexpr std::chrono::hours kNever{1};

TEST(ProgressBar, IsDrawnAndWipedAway) {
  const std::string out = on_terminal([] {
    ProgressBar bar("reading", kAtOnce);
    bar.update(1, 2);
  });
  EXPECT_NE(out.find("\rreading [####################                    ]  50%"), std::string::npos) << out;
  const std::string wiped = '\r' + std::string(79, ' ') + '\r';
  EXPECT_TRUE(out.ends_with(wiped)) << out;
}

TEST(ProgressBar, IsWipedAwayByAnInterruptToo) {
  const std::string out = on_terminal([] {
    ProgressBar bar("reading", kAtOnce);
    bar.update(1, 2);
    raise(SIGINT);
    fmt::print(stderr, "still here");
  });
  EXPECT_TRUE(out.ends_with('\r' + std::string(79, ' ') + '\r')) << out;
}

TEST(ProgressBar, ShortWorkShowsNone) {
  EXPECT_EQ(on_terminal([] {
              ProgressBar bar("reading", kNever);
              bar.update(1, 2);
            }),
            "");
}

TEST(ProgressBar, NothingToDoShowsNone) {
  EXPECT_EQ(on_terminal([] {
              ProgressBar bar("reading", kAtOnce);
              bar.update(0, 0);
            }),
            "");
}

TEST(ProgressBar, IsForTerminalsOnly) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("reading", kAtOnce);
    bar.update(1, 2);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace kshim::test

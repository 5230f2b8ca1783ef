// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "analyzer/owner/databases.h"

namespace kshim::packages {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxAnswerBytes = 4096;

/// What `rpm -qf` writes within `left`, which shrinks by the time it took; empty where it fails.
std::string ask(const std::string& program, const std::string& path, milliseconds& left) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const char* const arguments[] = {
      program.c_str(), "-qf",  "--qf", "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n", "--",
      path.c_str(),    nullptr};
  const char* const environment[] = {"LC_ALL=C", nullptr};
  pid_t child = -1;
  const bool started =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, const_cast<char* const*>(arguments),
                    const_cast<char* const*>(environment)) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  const auto end = Clock::now() + left;
  const auto rest = [end] {
    return std::max(std::chrono::duration_cast<milliseconds>(end - Clock::now()), milliseconds(0));
  };
  while (started) {
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(rest().count()));
    if (ready < 0 && errno == EINTR) continue;
    char part[kMaxAnswerBytes];
    const ssize_t got = ready > 0 ? ::read(ends[0], part, sizeof(part)) : -1;
    if (got > 0) out.append(part, static_cast<std::size_t>(got));
    if (got == 0) break;
    if (got < 0 || out.size() > kMaxAnswerBytes) {
      ::kill(child, SIGKILL);
      out.clear();
      break;
    }
  }
  ::close(ends[0]);
  // It has closed its output, so it ends now, or is ended when the time is over.
  int status = -1;
  pid_t ended = 0;
  while (started && (ended = ::waitpid(child, &status, WNOHANG)) == 0 && rest().count() > 0)
    ::poll(nullptr, 0, 1);
  if (started && ended == 0) ::kill(child, SIGKILL);
  left = rest();
  return ended == child && status == 0 ? out : std::string();
}

}  // namespace

std::optional<Package> RpmQuery::owner(const std::string& path) {
  if (left_.count() <= 0 || ::access(program_.c_str(), X_OK) != 0) return std::nullopt;
  const std::string answer = ask(program_, path, left_);
  const std::size_t space = answer.find(' ');
  const std::size_t end = answer.find('\n');
  if (space == std::string::npos || end == std::string::npos || end < space) return std::nullopt;
  Package out;
  out.name = answer.substr(0, space);
  out.version = answer.substr(space + 1, end - space - 1);
  out.manager = "rpm";
  return is_package_name(out.name) ? std::optional(out) : std::nullopt;
}

}  // namespace kshim::packages

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/own_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

// Sanitizers take more addresses than any limit worth having.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KSHIM_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KSHIM_SANITIZED true
#endif
#endif
#ifndef KSHIM_SANITIZED
#define KSHIM_SANITIZED false
#endif

namespace kshim::device_code {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr bool kSanitized = KSHIM_SANITIZED;
constexpr std::size_t kMaxAnswerBytes = std::size_t{1} << 20;

void limit(int resource, rlim_t most) {
  const rlimit value{most, most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

[[noreturn]] void child(int answer, const ProcessQuestion& question, const ProcessLimits& limits) noexcept {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, limits.cpu_seconds);
  if (!kSanitized && limits.memory != 0) limit(RLIMIT_AS, limits.memory);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGINT, SIGTERM})
    ::signal(number, SIG_DFL);
  // What a library, or an allocator that is at its end, has to say is not for the user.
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (nothing >= 0) ::dup2(nothing, stream);
  const std::string text = question(answer);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::write(answer, text.data() + done, text.size() - done);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  // The end of the answer. A library may end the process before there is one.
  const char end = '\0';
  ::_exit(::write(answer, &end, 1) == 1 ? 0 : 1);
}

/// What comes through the pipe before it ends; false where it does not end in time.
bool receive(int answer, milliseconds patience, std::string& out) {
  const auto end = Clock::now() + patience;
  char part[4096];
  while (out.size() <= kMaxAnswerBytes) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
    pollfd waiting{answer, POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t got = ::read(answer, part, sizeof(part));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(part, static_cast<std::size_t>(got));
    if (out.back() == '\0') break;  // what the question has started may keep the pipe open
  }
  return true;
}

/// The status of a child that has closed its pipe or was killed. One that waits inside a driver ends when the
/// driver lets it go: it is left behind.
int status_of(pid_t child) {
  constexpr int kLooks = 200;
  int status = 0;
  for (int i = 0; i < kLooks; ++i) {
    const pid_t got = ::waitpid(child, &status, WNOHANG);
    if (got == child) return status;
    if (got < 0 && errno != EINTR) return 0;
    ::poll(nullptr, 0, i < kLooks / 2 ? 1 : 10);
  }
  return 0;
}

}  // namespace

ProcessAnswer ask_in_own_process(const ProcessQuestion& question, const ProcessLimits& limits) {
  ProcessAnswer out;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return out;
  const pid_t asked = ::fork();
  if (asked == 0) {
    ::close(ends[0]);
    child(ends[1], question, limits);
  }
  ::close(ends[1]);
  if (asked > 0) {
    const bool in_time = receive(ends[0], limits.patience, out.text);
    const bool whole = in_time && !out.text.empty() && out.text.back() == '\0';
    if (!in_time || whole || out.text.size() > kMaxAnswerBytes) ::kill(asked, SIGKILL);
    const int status = status_of(asked);
    out.end = whole     ? ProcessAnswer::End::whole
              : in_time ? ProcessAnswer::End::crashed
                        : ProcessAnswer::End::late;
    if (whole) out.text.pop_back();
    if (out.end == ProcessAnswer::End::crashed && WIFSIGNALED(status)) out.signal = WTERMSIG(status);
    if (out.end == ProcessAnswer::End::crashed && WIFEXITED(status)) out.status = WEXITSTATUS(status);
  }
  ::close(ends[0]);
  return out;
}

}  // namespace kshim::device_code

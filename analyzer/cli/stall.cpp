// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>

#include "analyzer/cli/command.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
namespace {

long g_patience = 0;  ///< seconds
constexpr int kGoOn = -1;
std::atomic<int> g_status = kGoOn;

[[noreturn]] void give_up(const std::string& last, int status) {
  print_error(fmt::format("a file system has not answered for {} s (--io-timeout){}{}", g_patience,
                          last.empty() ? "" : "; the last file that was opened: ", core::sanitize(last)));
  // A thread that waits for a FUSE daemon keeps the process after SIGKILL: a reader of our output must not
  // wait for it.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  ::_exit(status);
}

std::int64_t cpu_time(clockid_t clock) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

/// A command that computes makes progress. One that reads and never computes waits for a file system.
void* watch(void* /*unused*/) {
  constexpr std::int64_t kProgress = 20'000;  // nanoseconds; the two clocks are not read at once
  const timespec second{.tv_sec = 1, .tv_nsec = 0};
  std::int64_t before = 0;
  for (long seconds = 0;;) {
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &second, nullptr);
    const std::int64_t used = cpu_time(CLOCK_PROCESS_CPUTIME_ID) - cpu_time(CLOCK_THREAD_CPUTIME_ID);
    const bool waits = used - before < kProgress;
    before = used;
    const int status = g_status;
    try {
      const auto last = files::last_opened();
      seconds = waits && last && status != kGoOn ? seconds + 1 : 0;
      if (seconds >= g_patience) give_up(*last, status);
    } catch (const std::bad_alloc&) {  // the other threads need the memory
    }
  }
}

}  // namespace

void end_on_stall(std::chrono::seconds patience, int status) {
  constexpr std::size_t kStack = std::size_t{256} << 10U;
  if (patience.count() == 0) return;
  g_patience = patience.count();
  g_status = status;
  pthread_attr_t attributes;
  pthread_t thread{};
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  ::pthread_create(&thread, &attributes, watch, nullptr);  // without memory for it, there is no time-out
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
}

void on_stall(std::optional<int> status) { g_status = status.value_or(kGoOn); }

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// A host that writes reports through the shim's own parts, for report_file_test.py.   report_probe MODE
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/state.h"
#include "failure/failure_notice.h"

namespace {

using kshim::report::Field;
using kshim::report::RecordType;

void write_library(std::string_view soname) {
  kshim::shim::SlowPath().run([&](kshim::shim::State& state) {
    state.report.write<RecordType::library>([&](auto& record) {
      record.template add<Field::library_soname>(soname);
      record.template add<Field::library_path>("/lib/x");
      record.template null<Field::library_version>();
      record.template null<Field::library_build_id>();
    });
  });
}

void print_notice(const kshim::shim::Notice& alarm) {
  kshim::shim::SlowPath().run(
      [&](kshim::shim::State& state) { kshim::shim::print_notice(alarm, state.report.path()); });
}

void wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
}

void many_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 500; ++n) write_library(std::string(static_cast<std::size_t>(n), 'x'));
    });
  for (std::thread& thread : threads) thread.join();
}

// A fork while other threads hold the report's lock.
void fork_from_busy_threads() {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) write_library("parent");
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      write_library("child");
      _exit(0);
    }
    wait_for(child);
  }
  stop = true;
  busy.join();
}

// What a daemon does: all descriptors closed, the numbers used again.
int reuse_descriptors(const char* precious) {
  write_library("before");
  for (int fd = 3; fd < 4096; ++fd) close(fd);
  close(2);
  const int file = open(precious, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (file != 2) return 10;
  for (int fd = 900; fd < 1100; ++fd) dup2(file, fd);
  write_library("after");
  kshim::shim::Notice alarm;
  alarm.code = 209;
  fcntl(2, F_SETFD, FD_CLOEXEC);
  print_notice(alarm);
  struct stat info {};
  return fstat(file, &info) == 0 && info.st_size == 0 ? 0 : 11;
}

// Started without stderr: the first file it opens gets that number.
int open_file_as_stderr(const char* precious) {
  if (open(precious, O_RDWR | O_CREAT | O_TRUNC, 0600) != 2) return 10;
  kshim::shim::Notice alarm;
  alarm.code = 209;
  print_notice(alarm);
  struct stat info {};
  return fstat(2, &info) == 0 && info.st_size == 0 ? 0 : 11;
}

void small_disk() {
  write_library("before");
  rlimit limit{1200, RLIM_INFINITY};
  setrlimit(RLIMIT_FSIZE, &limit);
  write_library(std::string(4000, 'x'));  // a part of it fits
  limit.rlim_cur = 100;
  setrlimit(RLIMIT_FSIZE, &limit);
  write_library("past the limit");  // SIGXFSZ
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  write_library("after");
}

void raise_alarms() {
  kshim::shim::SlowPath().run([](kshim::shim::State& state) { state.report.begin(); });
  kshim::shim::Notice alarm;
  alarm.api = "cuLaunchKernel";
  for (const int code : {209, 209, 400, 700, 209, 700}) {
    alarm.code = code;
    print_notice(alarm);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  errno = 4711;
  if (mode == "nothing") return 0;
  if (mode == "once") write_library("one");
  if (mode == "_exit" || mode == "kill" || mode == "quick") write_library("one");
  if (mode == "_exit") _exit(3);
  if (mode == "kill") raise(SIGKILL);
  if (mode == "quick") std::quick_exit(4);
  if (mode == "threads") many_threads();
  if (mode == "busy-fork") fork_from_busy_threads();
  if (mode == "reuse") return reuse_descriptors(argv[2]);
  if (mode == "no-stderr") return open_file_as_stderr(argv[2]);
  if (mode == "small-disk") small_disk();
  if (mode == "alarm") raise_alarms();
  if (mode == "fork" || mode == "silent-fork") {
    write_library("parent");
    const pid_t child = fork();
    if (child == 0) {
      if (mode == "fork") write_library("child");
      return 0;
    }
    wait_for(child);
    write_library("parent");
  }
  if (mode == "vfork") {
    write_library("parent");
    const pid_t child = vfork();
    if (child == 0) _exit(0);
    wait_for(child);
    write_library("parent");
  }
  if (mode == "exec") {
    write_library("one");
    execl(argv[0], argv[0], "once", static_cast<char*>(nullptr));
    return 127;
  }
  if (mode == "chdir") {
    if (chdir("/") != 0) return 12;
    write_library("one");
  }
  if (mode != "threads" && mode != "busy-fork" && mode != "fork" && mode != "silent-fork" &&
      mode != "vfork" && mode != "exec")
    return errno == 4711 ? 0 : 13;
  return 0;
}

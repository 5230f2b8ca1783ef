// SPDX-License-Identifier: Apache-2.0
// What a host makes of descriptor 2, and of process numbers.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

namespace hostile {
namespace {

/// Everything that is in the file, on stdout.
void show(const char* path) {
  for (const char c : contents(path)) std::putchar(c);
}

int stream(const char* mode) {
  std::fclose(stderr);
  std::FILE* file = std::fopen("mine.txt", mode);
  if (file == nullptr || fileno(file) != STDERR_FILENO) return 1;
  std::fputs("a,b\n", file);
  std::fflush(file);
  use("host");
  std::fputs("1,2\n", file);
  std::fclose(file);
  show("mine.txt");
  return 0;
}

int descriptor(bool twice) {
  ::close(STDERR_FILENO);
  if (::open("mine.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO) return 1;
  if (twice && ::open("mine.txt", O_WRONLY) < 0) return 1;
  use("host");
  show("mine.txt");
  return 0;
}

int pipe_end() {
  ::close(STDIN_FILENO);
  ::close(STDERR_FILENO);
  int ends[2] = {};
  if (::pipe(ends) != 0 || ends[1] != STDERR_FILENO) return 1;
  use("host");
  if (::write(ends[1], "end", 3) != 3) return 1;
  char text[4096] = {};
  std::printf("%zd bytes\n", ::read(ends[0], text, sizeof text));
  return 0;
}

}  // namespace

/// ARGUMENT: stream, append, descriptor, twice, pipe: number 2 is a file of the host's own. redirected: a log
/// of its own is in the place of stderr.
int own_stderr() {
  if (attach() != 0) return 1;
  if (g_argument == "stream") return stream("w");
  if (g_argument == "append") return stream("a");
  if (g_argument == "descriptor" || g_argument == "twice") return descriptor(g_argument == "twice");
  if (g_argument == "pipe") return pipe_end();
  const int log = ::open("log.txt", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (log < 0 || ::dup2(log, STDERR_FILENO) != STDERR_FILENO) return 1;
  use("host");
  return 0;
}

/// To be run as the first process of a pid namespace: its child is the first of another one.
int same_number() {
  use("parent");
  if (::getpid() != 1 || ::unshare(CLONE_NEWPID) != 0) return 77;
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    use("child");
    std::printf("%d\n", ::getpid());
    std::fflush(stdout);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  use("parent");
  return status == 0 ? 0 : 1;
}

}  // namespace hostile

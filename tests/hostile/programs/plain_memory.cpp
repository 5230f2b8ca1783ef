// SPDX-License-Identifier: Apache-2.0
// What is in memory: images, handles, the environment, and how much there is of it.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include "plain.h"

extern char** environ;

namespace hostile {
namespace {

std::vector<char> contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::uintptr_t kPage = 4096;

/// The barrier: the page that was written to is opened again.
void open_page(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(kPage - 1);
  if (mprotect(reinterpret_cast<void*>(at), kPage, PROT_READ | PROT_WRITE) != 0) _exit(92);
}

/// Makes all private writable memory read-only but the stack, this program's, and that of this thread.
void close_memory() {
  static char maps[1 << 20];
  const int file = open("/proc/self/maps", O_RDONLY);
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(got))
    got = read(file, maps + size, sizeof maps - 1 - size);
  close(file);
  const int here = 0;
  const void* const kept[] = {&here, maps, &errno};
  for (char* line = maps; *line != 0; line = std::strchr(line, '\n') + 1) {
    char* end = nullptr;
    const std::uintptr_t low = std::strtoul(line, &end, 16);
    const std::uintptr_t high = std::strtoul(end + 1, &end, 16);
    const bool is_kept = std::any_of(std::begin(kept), std::end(kept), [=](const void* address) {
      const auto value = reinterpret_cast<std::uintptr_t>(address);
      return value >= low && value < high;
    });
    if (std::strncmp(end, " rw-p", 5) == 0 && !is_kept)
      mprotect(reinterpret_cast<void*>(low), high - low, PROT_READ);
  }
}

/// Lines of /proc/self/status and the like, for the test, which compares them.
void tell(const char* source, const std::string& file) {
  std::ofstream(file) << std::ifstream(source).rdbuf();
}

}  // namespace

/// Each image (a word each) is read into one buffer and loaded from there.
int one_buffer() {
  static char buffer[1 << 20];
  start();
  for (const std::string& path : g_words) {
    const std::vector<char> image = contents(path);
    std::memcpy(buffer, image.data(), image.size());
    driver().answers(0);
    long module = 0;
    const int loaded = driver().call("cuModuleLoadData", word(&module), word(buffer));
    driver().answers(500);
    long function = 0;
    std::printf("%d %d\n", loaded,
                driver().call("cuModuleGetFunction", word(&function), module, word(path.c_str())));
  }
  return 0;
}

/// WORD 0 loads of the same text, which is not an image, each from a buffer of its own; the driver answers
/// WORD 1. Then another call fails.
int fresh_buffers() {
  start();
  driver().answers(std::stoi(g_words[1]));
  const std::string text = "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '7');
  std::vector<std::string> buffers(std::stoul(g_words[0]), text);
  long module = 0;
  for (const std::string& buffer : buffers)
    driver().call("cuModuleLoadData", word(&module), word(buffer.c_str()));
  driver().answers(kRefused);
  std::printf("%d\n", fail_as("after"));
  return 0;
}

/// WORD 0 look-ups by different names, all of them with handles that have been there; then a launch fails.
/// How much memory there was before and after is in the files WORD 1 and WORD 2.
int handles() {
  start();
  driver().answers(0);
  long function = 0;
  long module = 0;
  driver().call("cuModuleLoadData", word(&module), 0);
  const Call look_up = driver().function("cuModuleGetFunction");
  char name[64];
  const long count = std::stol(g_words[0]);
  for (long i = 0; i < count; ++i) {
    if (i == 2000) tell("/proc/self/status", g_words[1]);
    std::snprintf(name, sizeof name, "a_kernel_with_a_name_of_a_usual_length_%ld", i);
    look_up(word(&function), module, word(name), 0, 0, 0, 0, 0, 0, 0, 0, 0);
  }
  tell("/proc/self/status", g_words[2]);
  driver().answers(700);
  std::printf("%d\n", driver().call("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1));
  return 0;
}

/// WORD 0 failures, of the kind that WORD 1 says: "same" or "different". How much memory there was after 2000
/// and after all of them is in the files WORD 2 and WORD 3.
int many_failures() {
  start();
  const long count = std::stol(g_words[0]);
  const bool same = g_words[1] == "same";
  long refused = 0;
  char name[64];
  for (long i = 0; i < count; ++i) {
    if (i == 2000) tell("/proc/self/status", g_words[2]);
    std::snprintf(name, sizeof name, "a_failing_kernel_%ld", same ? 0 : i);
    refused += fail_as(name) == kRefused ? 1 : 0;
  }
  tell("/proc/self/status", g_words[3]);
  std::printf("%ld\n", refused);
  return 0;
}

/// The program's environment is not readable while it has put something else there (a privileged child that
/// cleans up, a runtime with an environment of its own).
int environment() {
  void* nothing = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static char* list[2] = {static_cast<char*>(nothing), nullptr};
  driver();
  char** const before = environ;
  environ = list;
  start();
  const int entries = fail_as("entries");
  environ = static_cast<char**>(nothing);
  const int array = fail_as("array");
  environ = before;
  std::printf("%d %d\n", entries, array);
  return 0;
}

/// Loads the file WORD 0 by its name; what was read is in the file WORD 1.
int big_file() {
  start();
  driver().answers(0);
  long module = 0;
  std::printf("%d\n", driver().call("cuModuleLoad", word(&module), word(g_words[0].c_str())));
  tell("/proc/self/io", g_words[1]);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::ofstream(g_words[1], std::ios::app) << "minflt: " << usage.ru_minflt << "\n";
  return 0;
}

/// WORD 0: "plain" or "cuda"; the process's own account of its memory is in the file WORD 1. WORD 2:
/// "locked".
int memory() {
  if (g_words.size() > 2) std::printf("mlockall: %d\n", mlockall(MCL_CURRENT | MCL_FUTURE));
  if (g_words[0] == "cuda") {
    start();
    std::printf("%d\n", fail_as("memory"));
  }
  void* more = std::malloc(100000);
  std::printf("malloc: %d\n", more != nullptr);
  std::free(more);
  tell("/proc/self/status", g_words[1]);
  return 0;
}

/// An incremental checkpointer: it learns from SIGSEGV which pages are written to. WORD 0: "stack", and the
/// handler has a signal stack.
int barrier() {
  static char stack[1 << 16];
  const bool own_stack = !g_words.empty();
  const stack_t signals{stack, 0, sizeof stack};
  if (own_stack) sigaltstack(&signals, nullptr);
  struct sigaction action {};
  action.sa_sigaction = open_page;
  action.sa_flags = SA_SIGINFO | (own_stack ? SA_ONSTACK : 0);
  sigaction(SIGSEGV, &action, nullptr);
  start();
  const int before = fail_as("before");
  close_memory();
  const int after = fail_as("after");
  std::printf("%d %d\n", before, after);
  return 0;
}

/// As a sandbox of privilege separation does, the program forbids itself all further descriptors: before it
/// first uses the driver, or after a failure, in a child of fork ("child").
int no_descriptors() {
  driver();
  const bool child = !g_words.empty() && g_words[0] == "child";
  if (child) {
    start();
    fail_as("of the parent");
    if (const pid_t process = fork(); process != 0) {
      int status = 0;
      return waitpid(process, &status, 0) == process ? WEXITSTATUS(status) : 90;
    }
  }
  const rlimit none{0, 0};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 91;
  start();
  static char image[1 << 12] = "no image";
  long module = 0;
  std::printf("%d %d\n", driver().call("cuModuleLoadData", word(&module), word(image)), fail_as("too late"));
  return 0;
}

}  // namespace hostile

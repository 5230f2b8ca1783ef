// SPDX-License-Identifier: Apache-2.0
// host GOOD BAD SCENARIO [ARGUMENT]: what programs do to themselves, around one load that works (GOOD has an
// image for device 0) and one that does not (BAD has none). Prints what it got, which must be the same with
// the shim.
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

extern char** environ;

namespace hostile {

std::vector<char> g_good;
std::vector<char> g_bad;
std::string g_argument;

void use(const char* who) {
  void* module = nullptr;
  void* function = nullptr;
  const int attached = attach();
  const int good = attached != 0 ? -1 : load(g_good, &module);
  const int none = good != 0 ? -1 : look_up(module, "no_such_kernel", &function);
  std::printf("%s: %d %d %d %d\n", who, attached, good, none, load(g_bad, &module));
  std::fflush(stdout);
}

}  // namespace hostile

namespace {

using hostile::g_argument;
using hostile::g_bad;
using hostile::g_good;
using hostile::use;

char** g_argv = nullptr;

int wait_for(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

char** arguments(const char* scenario) {
  static char text[32];
  std::snprintf(text, sizeof text, "%s", scenario);
  static char* list[5];
  for (int i = 0; i < 3; ++i) list[i] = g_argv[i];
  list[3] = text;
  return list;
}

int child_of_vfork() {
  use("parent");
  char** const list = arguments("once");
  pid_t child = vfork();
  if (child == 0) {
    execv("/proc/self/exe", list);
    _exit(9);
  }
  std::printf("exec: %d\n", wait_for(child));
  child = vfork();
  if (child == 0) _exit(7);
  std::printf("_exit: %d\n", wait_for(child));
  use("parent");
  return 0;
}

int spawned() {
  use("parent");
  std::string self = g_argv[0];
  pid_t child = -1;
  const int error = posix_spawn(&child, self.c_str(), nullptr, nullptr, arguments("once"), environ);
  std::printf("%d %d\n", error, wait_for(child));
  use("parent");
  return 0;
}

/// As daemon(3) and its many relatives do. The parent waits, so that the test can.
int daemon() {
  int channel[2];
  if (pipe(channel) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int fd = 0; fd < 4096; ++fd)
      if (fd != channel[1]) close(fd);
    open("/dev/null", O_RDWR);
    if (dup(0) != 1 || dup(0) != 2) _exit(1);
    umask(0);
    use("daemon");
    syscall(SYS_close_range, 3U, static_cast<unsigned>(channel[1]) - 1, 0U);
    syscall(SYS_close_range, static_cast<unsigned>(channel[1]) + 1, ~0U, 0U);
    void* module = nullptr;
    const int mine = open("mine.txt", O_WRONLY | O_CREAT, 0600);
    const int code = hostile::load(g_bad, &module);
    dprintf(mine, "mine %d\n", code);
    dprintf(channel[1], "daemon: %d, file %d\n", code, mine);
    std::exit(0);
  }
  close(channel[1]);
  char text[200] = {};
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(got))
    got = read(channel[0], text + size, sizeof text - 1 - size);
  std::printf("%s%d\n", text, wait_for(child));
  return 0;
}

int ends(const std::string& how) {
  use("host");
  if (how == "abort") std::abort();
  if (how == "segv") raise(SIGSEGV);
  if (how == "quick") std::quick_exit(4);
  if (how == "exec") execv("/proc/self/exe", arguments("once"));
  if (how == "thread") {  // the main thread goes first
    std::thread([] {
      usleep(50'000);
      use("last");
    }).detach();
    pthread_exit(nullptr);
  }
  return 1;
}

int many_threads() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  if (hostile::attach() != 0) return 1;
  for (int i = 0; i < 64; ++i)
    threads.emplace_back([&wrong] {
      void* module = nullptr;
      if (hostile::attach() != 0) ++wrong;
      for (int round = 0; round < 20; ++round)
        wrong += hostile::load(g_bad, &module) == 209 && hostile::load(g_good, &module) == 0 ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong.load());
  return 0;
}

/// Failures that differ, in ARGUMENT threads, each told on standard output once it has come back: for a host
/// that is killed at any moment. Then it waits for that.
int until_killed() {
  static void* module = nullptr;
  static std::atomic<int> number{0};
  if (hostile::attach() != 0 || hostile::load(g_good, &module) != 0) return 1;
  std::vector<std::thread> threads;
  for (unsigned long i = std::stoul(g_argument); i > 0; --i)
    threads.emplace_back([] {
      void* function = nullptr;
      if (hostile::attach() != 0) return;
      for (int mine = number.fetch_add(1); mine < 300; mine = number.fetch_add(1)) {
        const std::string name = "kernel_" + std::to_string(mine);
        hostile::look_up(module, name.c_str(), &function);
        dprintf(STDOUT_FILENO, "%s\n", name.c_str());
      }
    });
  for (std::thread& thread : threads) thread.join();
  dprintf(STDOUT_FILENO, "done\n");
  for (;;) pause();
}

/// The file is unloaded while the driver still has what was loaded from it.
int closed_library() {
  void* module = nullptr;
  void* function = nullptr;
  if (hostile::attach() != 0) return 1;
  for (int i = 0; i < 3; ++i) {
    void* library = dlopen(g_argument.c_str(), RTLD_NOW);
    if (library == nullptr) return 2;
    const void* code = dlsym(library, "kshim_test_image");
    const int loaded =
        hostile::driver_function<int (*)(void**, const void*)>("cuModuleLoadData")(&module, code);
    dlclose(library);
    std::printf("%d %d\n", loaded, hostile::look_up(module, "no_such_kernel", &function));
  }
  return 0;
}

/// Libraries with device code (ARGUMENT is a folder of them) come and go in four threads, while the driver is
/// started again and again.
int churn() {
  std::vector<std::string> files;
  DIR* folder = opendir(g_argument.c_str());
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder))
    if (entry->d_name[0] != '.') files.push_back(g_argument + "/" + entry->d_name);
  closedir(folder);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&files, &stop, i] {
      for (std::size_t at = i; !stop.load(); at = (at + 4) % files.size()) {
        void* library = dlopen(files[at].c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (library != nullptr) dlclose(library);
      }
    });
  int wrong = 0;
  const auto init = hostile::driver_function<int (*)(unsigned)>("cuInit");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  void* module = nullptr;
  hostile::attach();
  while (std::chrono::steady_clock::now() < end)
    wrong += init(0) == 0 && hostile::load(g_bad, &module) == 209 ? 0 : 1;
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong);
  return 0;
}

int once() {
  use("host");
  return 3;
}

const std::map<std::string, std::function<int()>>& scenarios() {
  static const std::map<std::string, std::function<int()>> kAll = {
      {"once", once},
      {"vfork", child_of_vfork},
      {"spawn", spawned},
      {"daemon", daemon},
      {"abort", [] { return ends("abort"); }},
      {"segv", [] { return ends("segv"); }},
      {"quick", [] { return ends("quick"); }},
      {"exec", [] { return ends("exec"); }},
      {"main-thread-first", [] { return ends("thread"); }},
      {"storm", hostile::storm},
      {"handler", hostile::handler_calls},
      {"fiber", hostile::fiber_calls},
      {"own-memory", hostile::thread_on_own_memory},
      {"own-stderr", hostile::own_stderr},
      {"same-number", hostile::same_number},
      {"jumps", hostile::jumps},
      {"descriptors", hostile::descriptors},
      {"file-size", [] { return hostile::limited(RLIMIT_FSIZE); }},
      {"address-space", [] { return hostile::limited(RLIMIT_AS); }},
      {"processes", [] { return hostile::limited(RLIMIT_NPROC); }},
      {"recursion", hostile::recursion},
      {"sandbox", hostile::sandboxed},
      {"landlock", hostile::landlocked},
      {"threads", many_threads},
      {"until-killed", until_killed},
      {"until-full", hostile::until_full},
      {"replaced", hostile::replaced_by_fifo},
      {"chroot", hostile::changed_root},
      {"other-user", hostile::other_user},
      {"churn", churn},
      {"closed-library", closed_library},
  };
  return kAll;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  g_argv = argv;
  g_good = hostile::contents(argv[1]);
  g_bad = hostile::contents(argv[2]);
  if (argc > 4) g_argument = argv[4];
  const auto found = scenarios().find(argv[3]);
  return found == scenarios().end() ? 2 : found->second();
}

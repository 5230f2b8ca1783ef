// SPDX-License-Identifier: Apache-2.0
// host GOOD BAD SCENARIO [ARGUMENT]: what programs do to themselves, around one load that works (GOOD has an image for device 0)
// and one that does not (BAD has none). Prints what it got, which must be the same with the shim.
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "driver.h"

extern char** environ;

namespace {

char** g_argv = nullptr;
std::vector<char> g_good;
std::vector<char> g_bad;
std::string g_argument;

/// A load that works, one that fails, and a look-up that fails.
void use(const char* who) {
  void* module = nullptr;
  void* function = nullptr;
  const int attached = hostile::attach();
  const int good = attached != 0 ? -1 : hostile::load(g_good, &module);
  const int none = good != 0 ? -1 : hostile::look_up(module, "no_such_kernel", &function);
  std::printf("%s: %d %d %d %d\n", who, attached, good, none, hostile::load(g_bad, &module));
  std::fflush(stdout);
}

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

/// Past libc and every pthread_atfork handler.
int raw_clone() {
  use("parent");
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    void* module = nullptr;
    std::printf("child: %d\n", hostile::load(g_bad, &module));  // the driver's state is not the child's
    std::fflush(stdout);
    syscall(SYS_exit_group, 5);
  }
  std::printf("%d\n", wait_for(child));
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

volatile sig_atomic_t g_signals = 0;
void count(int) { g_signals = g_signals + 1; }

/// System calls are interrupted all the time.
int storm() {
  struct sigaction action {};
  action.sa_handler = count;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 150}, {0, 150}};
  if (hostile::attach() != 0) return 1;
  setitimer(ITIMER_REAL, &often, nullptr);
  void* module = nullptr;
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    if (hostile::load(g_bad, &module) != 209) ++wrong;
    if (hostile::load(g_good, &module) != 0) ++wrong;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("wrong: %d\n", wrong);
  return g_signals > 0 ? 0 : 2;
}

void call_the_driver(int) {
  void* module = nullptr;
  std::printf("handler: %d\n", hostile::load(g_bad, &module));
}

/// On a stack of its own, of the size that such stacks have had for decades.
int handler_calls() {
  if (hostile::attach() != 0) return 1;
  static char memory[16384];
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = call_the_driver;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  use("host");
  return 0;
}

sigjmp_buf g_back;
void jump_back(int) { siglongjmp(g_back, 1); }

/// Again and again out of wherever the timer finds it, at times out of the shim. Not out of the driver, whose locks would stay
/// locked: the calls fail before it takes any.
int jumps() {
  struct sigaction action {};
  action.sa_handler = jump_back;
  sigaction(SIGALRM, &action, nullptr);
  const auto get = hostile::driver_function<int (*)(void**, void*, const char*)>("cuModuleGetFunction");
  void* function = nullptr;
  if (hostile::attach() != 0) return 1;
  static std::atomic<int> answer{-1};
  static int i = 0;  // a local would be undefined after the jump
  for (i = 0; i < 500; ++i) {
    if (sigsetjmp(g_back, 1) != 0) continue;
    const itimerval soon{{0, 0}, {0, 30 + (i * 7) % 90}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    for (;;) {
      static char name[32];
      static int number = 0;
      std::snprintf(name, sizeof name, "k%d", number++ % 900);
      answer = get(&function, nullptr, name);
    }
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("%d\n", answer.load());
  return 0;
}

/// How many files a program with a limit can open, before and after; the last 16 numbers are those that it relies on.
int descriptors() {
  const auto limit = static_cast<rlim_t>(std::stoul(g_argument));
  const rlimit few{limit, limit};
  setrlimit(RLIMIT_NOFILE, &few);
  use("host");
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) ++opened;
  std::printf("%d\n", opened);
  void* module = nullptr;
  std::printf("%d\n", hostile::load(g_bad, &module));
  return 0;
}

int limited(int which) {
  const rlim_t value = std::stoul(g_argument);
  const rlimit limit{value, value};
  if (setrlimit(which, &limit) != 0) return 1;
  use("host");
  const bool grown = std::vector<char>(100'000, 'x').back() == 'x';
  std::fprintf(stderr, "a line of the host's\n");
  return grown ? 0 : 1;
}

/// All but `left` bytes of the main thread's stack.
[[gnu::noinline]] int deep(std::uintptr_t floor, std::size_t left) {
  volatile char room[1024];
  room[0] = 1;
  if (reinterpret_cast<std::uintptr_t>(room) > floor + left) return deep(floor, left) + room[0] - 1;
  void* module = nullptr;
  return hostile::load(g_bad, &module);
}
int recursion() {
  void* module = nullptr;
  if (hostile::attach() != 0 || hostile::load(g_good, &module) != 0) return 1;
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  std::printf("%d\n", deep(reinterpret_cast<std::uintptr_t>(low), std::stoul(g_argument)));
  return 0;
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

/// Failures that differ, in ARGUMENT threads, each told on standard output once it has come back: for a host that is killed at any
/// moment. Then it waits for that.
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

/// The report's file is removed and its name given to a FIFO, while the program closes what it does not know.
int replaced_by_fifo() {
  use("host");
  DIR* folder = opendir("kshim-report");
  for (const dirent* entry = folder == nullptr ? nullptr : readdir(folder); entry != nullptr; entry = readdir(folder)) {
    const std::string path = std::string("kshim-report/") + entry->d_name;
    if (entry->d_name[0] != '.' && rename(path.c_str(), "before.jsonl") == 0) mkfifo(path.c_str(), 0600);
  }
  if (folder != nullptr) closedir(folder);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  void* module = nullptr;
  g_bad[g_bad.size() - 1] = static_cast<char>(g_bad[g_bad.size() - 1] + 1);
  std::printf("%d\n", hostile::load(g_bad, &module));
  return 0;
}

/// More failures than a small disk has room for.
int until_full() {
  void* module = nullptr;
  void* function = nullptr;
  if (hostile::attach() != 0 || hostile::load(g_good, &module) != 0) return 1;
  int wrong = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    wrong += hostile::look_up(module, name.c_str(), &function) == 500 ? 0 : 1;
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

int changed_root() {
  if (hostile::driver_function<void*>("cuInit") == nullptr || chroot(g_argument.c_str()) != 0 || chdir("/") != 0) return 1;
  use("inside");
  return 0;
}

int other_user() {
  use("root");
  if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
  syscall(SYS_close_range, 3U, ~0U, 0U);
  void* module = nullptr;
  std::printf("%d\n", hostile::load(g_bad, &module));
  return 0;
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
    const int loaded = hostile::driver_function<int (*)(void**, const void*)>("cuModuleLoadData")(&module, code);
    dlclose(library);
    std::printf("%d %d\n", loaded, hostile::look_up(module, "no_such_kernel", &function));
  }
  return 0;
}

/// Refuses one system call, as sandboxes do, from the start or once the driver has started. ARGUMENT: number:errno:early|late
int sandboxed() {
  unsigned number = 0;
  unsigned error = 0;
  char when[8] = {};
  if (std::sscanf(g_argument.c_str(), "%u:%u:%7s", &number, &error, when) != 3) return 1;
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, program};
  if (hostile::driver_function<void*>("cuInit") == nullptr) return 1;
  if (std::strcmp(when, "late") == 0) use("before");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) return 77;
  use("host");
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
      {"clone", raw_clone},
      {"daemon", daemon},
      {"abort", [] { return ends("abort"); }},
      {"segv", [] { return ends("segv"); }},
      {"quick", [] { return ends("quick"); }},
      {"exec", [] { return ends("exec"); }},
      {"main-thread-first", [] { return ends("thread"); }},
      {"storm", storm},
      {"handler", handler_calls},
      {"jumps", jumps},
      {"descriptors", descriptors},
      {"file-size", [] { return limited(RLIMIT_FSIZE); }},
      {"address-space", [] { return limited(RLIMIT_AS); }},
      {"processes", [] { return limited(RLIMIT_NPROC); }},
      {"recursion", recursion},
      {"sandbox", sandboxed},
      {"threads", many_threads},
      {"until-killed", until_killed},
      {"until-full", until_full},
      {"replaced", replaced_by_fifo},
      {"chroot", changed_root},
      {"other-user", other_user},
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

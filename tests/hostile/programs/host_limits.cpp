// SPDX-License-Identifier: Apache-2.0
// Hosts that are short of something: descriptors, memory, stack, room on disks, rights, system calls.
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "host.h"

namespace hostile {

/// How many files a program with a limit can open, before and after; the last 16 numbers are those that it
/// relies on.
int descriptors() {
  const auto limit = static_cast<rlim_t>(std::stoul(g_argument));
  const rlimit few{limit, limit};
  setrlimit(RLIMIT_NOFILE, &few);
  use("host");
  int opened = 0;
  while (open("/dev/null", O_RDONLY) >= 0) ++opened;
  std::printf("%d\n", opened);
  void* module = nullptr;
  std::printf("%d\n", load(g_bad, &module));
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
  return load(g_bad, &module);
}
int recursion() {
  void* module = nullptr;
  if (attach() != 0 || load(g_good, &module) != 0) return 1;
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t size = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  std::printf("%d\n", deep(reinterpret_cast<std::uintptr_t>(low), std::stoul(g_argument)));
  return 0;
}

/// The report's file is removed and its name given to a FIFO, while the program closes what it does not know.
int replaced_by_fifo() {
  use("host");
  DIR* folder = opendir("kshim-report");
  for (const dirent* entry = folder == nullptr ? nullptr : readdir(folder); entry != nullptr;
       entry = readdir(folder)) {
    const std::string path = std::string("kshim-report/") + entry->d_name;
    if (path.ends_with(".jsonl") && rename(path.c_str(), "before.jsonl") == 0) mkfifo(path.c_str(), 0600);
  }
  if (folder != nullptr) closedir(folder);
  syscall(SYS_close_range, 3U, ~0U, 0U);
  void* module = nullptr;
  g_bad[g_bad.size() - 1] = static_cast<char>(g_bad[g_bad.size() - 1] + 1);
  std::printf("%d\n", load(g_bad, &module));
  return 0;
}

/// More failures than a small disk has room for.
int until_full() {
  void* module = nullptr;
  void* function = nullptr;
  if (attach() != 0 || load(g_good, &module) != 0) return 1;
  int wrong = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "kernel_" + std::to_string(i);
    wrong += look_up(module, name.c_str(), &function) == 500 ? 0 : 1;
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

int changed_root() {
  if (driver_function<void*>("cuInit") == nullptr || chroot(g_argument.c_str()) != 0 || chdir("/") != 0)
    return 1;
  use("inside");
  return 0;
}

int other_user() {
  use("root");
  if (setgid(65534) != 0 || setuid(65534) != 0) return 1;
  syscall(SYS_close_range, 3U, ~0U, 0U);
  void* module = nullptr;
  std::printf("%d\n", load(g_bad, &module));
  return 0;
}

bool refuse(unsigned number, unsigned error) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Refuses one system call, as sandboxes do, from the start or once the driver has started. ARGUMENT:
/// number:errno:early|late
int sandboxed() {
  unsigned number = 0;
  unsigned error = 0;
  char when[8] = {};
  if (std::sscanf(g_argument.c_str(), "%u:%u:%7s", &number, &error, when) != 3) return 1;
  if (driver_function<void*>("cuInit") == nullptr) return 1;
  if (std::strcmp(when, "late") == 0) use("before");
  if (!refuse(number, error)) return 77;
  use("host");
  return 0;
}

namespace {

/// From now on files can be read below these folders only, if at all, and none can be written or made. False
/// where there is no Landlock.
bool confine(bool reads) {
  constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE;
  landlock_ruleset_attr rules{};
  rules.handled_access_fs =
      LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG;
  if (reads) rules.handled_access_fs |= kRead;
  const long set = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0);
  if (set < 0) return false;
  for (const char* folder : {"/usr", "/lib", "/lib64", "/bin", "/etc", "/proc"}) {
    landlock_path_beneath_attr below{};
    below.allowed_access = kRead;
    below.parent_fd = open(folder, O_PATH | O_CLOEXEC);
    if (reads) syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
    close(below.parent_fd);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const bool done = syscall(SYS_landlock_restrict_self, set, 0) == 0;
  close(static_cast<int>(set));
  return done;
}

}  // namespace

/// ARGUMENT: write:early|late, read:early|late or starts:late, which starts a program in there.
int landlocked() {
  const bool late = g_argument.ends_with("late");
  if (driver_function<void*>("cuInit") == nullptr) return 1;
  if (late) use("before");
  if (!confine(!g_argument.starts_with("write"))) return 77;
  if (g_argument.starts_with("starts")) return std::system("/bin/true");
  use("host");
  return 0;
}

}  // namespace hostile

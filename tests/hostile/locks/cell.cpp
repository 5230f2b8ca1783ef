// SPDX-License-Identifier: Apache-2.0
// cell HOLD ENTRY first|warm: a thread holds HOLD forever; this one goes into ENTRY. Prints "returned" once
// it is out again, or ends as ENTRY says. The rows are those of table.py. "first": ENTRY is the first that
// the shim hears of CUDA; "warm": a call has failed before.
//
// Also a library: Python calls cell_main() with the GIL held, which is then what is held.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../plain/calls.h"

extern char** environ;
extern "C" PlainSettings plain_driver;
extern "C" PlainSettings plain_runtime;

namespace {

using Call = long (*)(long, long, long, long, long, long, long, long, long, long, long, long);

// By reference, bound at the start: no look-up is needed to have them.
#define KSHIM_HOOK(layer, name, ...) extern "C" void name();
#include "hooks.def"
#undef KSHIM_HOOK

struct Function {
  const char* name;
  Call call;
};
#define KSHIM_HOOK(layer, name, ...) {#name, reinterpret_cast<Call>(name)},
const Function g_functions[] = {
#include "hooks.def"
};

constexpr int kRefused = 209;
void* g_driver_handle = nullptr;
const char* g_self = nullptr;

/// Without stdio and malloc, whose locks may be held.
void say(const char* text) {
  const iovec parts[] = {{const_cast<char*>(text), std::strlen(text)}, {const_cast<char*>("\n"), 1}};
  if (writev(STDOUT_FILENO, parts, 2) < 0) _exit(90);
}

[[noreturn]] void fail(const char* what) {
  say(what);
  syscall(SYS_exit_group, 91);
  for (;;) {
  }
}

[[noreturn]] void block() {
  for (;;) syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 8);
}

const Function& function(const char* name) {
  for (const Function& row : g_functions)
    if (std::strcmp(row.name, name) == 0) return row;
  fail(name);
}

long call(const char* name) { return function(name).call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0); }

void refuse_all() {
  plain_driver.answer = kRefused;
  plain_runtime.answer = kRefused;
}

/// What the shim makes the most of: a failing launch at both layers.
void fail_once() {
  if (call("cuLaunchKernel") != kRefused || call("cudaLaunchKernel") != kRefused) fail("not refused");
}

// --- what is held
// ----------------------------------------------------------------------------------------------------

std::atomic<bool> g_holding{false};
std::atomic<pid_t> g_holder{0};

/// The holder says this itself, or is seen to wait in a system call that nothing ends (an auditor, which is
/// in a namespace of its own). No malloc here: its lock may be what is held.
void wait_until_held() {
  char path[64];
  char text[64];
  while (!g_holding.load()) {
    usleep(1000);
    if (g_holder.load() == 0) continue;
    std::snprintf(path, sizeof path, "/proc/self/task/%d/syscall", static_cast<int>(g_holder.load()));
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    text[got > 0 ? got : 0] = 0;
    if (got > 0 && text[0] != 'r' && std::strtol(text, nullptr, 10) == SYS_ppoll) return;  // "running"
  }
}

[[noreturn]] void hold_now() {
  g_holding.store(true);
  block();
}

int in_callback(dl_phdr_info*, std::size_t, void*) { hold_now(); }
ssize_t blocking_write(void*, const char*, std::size_t) { hold_now(); }

char* g_bad_page = nullptr;
void make_readable(int) {
  mprotect(g_bad_page, 4096, PROT_READ);
  hold_now();
}

/// setenv() reads the environment under its lock and meets an entry that is not readable.
void hold_environment() {
  g_bad_page = static_cast<char*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static char* list[512];
  std::size_t count = 0;
  while (environ[count] != nullptr && count < 500) {
    list[count] = environ[count];
    ++count;
  }
  list[count] = g_bad_page;
  struct sigaction action {};
  action.sa_handler = make_readable;
  sigaction(SIGSEGV, &action, nullptr);
  environ = list;
  setenv("KSHIM_TEST_VARIABLE", "1", 1);
}

/// A stream whose first byte blocks, in the place of stderr: malloc_stats() writes under the arena's lock.
void hold_arena() {
  cookie_io_functions_t functions{};
  functions.write = blocking_write;
  stderr = fopencookie(nullptr, "w", functions);
  setvbuf(stderr, nullptr, _IONBF, 0);
  malloc_stats();
}

int g_notices = -1;
std::atomic<bool> g_filtered{false};

/// Such a call of this thread waits for a supervisor that never answers: the thread stops in the middle of
/// what it does.
void stop_at(unsigned number) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
  };
  const sock_fprog program{sizeof code / sizeof *code, code};
  g_notices = static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  if (g_notices < 0) fail("no seccomp");
  g_filtered.store(true);
}

std::string g_hold;

void* holder(void*) {
  g_holder.store(static_cast<pid_t>(syscall(SYS_gettid)));
  if (g_hold == "load") dlopen("libblocks.so", RTLD_NOW);
  if (g_hold == "iterate") dl_iterate_phdr(in_callback, nullptr);
  if (g_hold == "audit") dlopen("libstops_auditor.so", RTLD_NOW);
  if (g_hold == "malloc") hold_arena();
  if (g_hold == "stderr") {
    flockfile(stderr);
    hold_now();
  }
  if (g_hold == "environment") hold_environment();
  if (g_hold == "driver") {
    plain_driver.stuck_in = "cuCtxSynchronize";
    g_holding.store(true);
    call("cuCtxSynchronize");
  }
  if (g_hold == "question") {  // the shim asks the driver for the device, and hears nothing
    plain_driver.stuck_in = "cuCtxGetDevice";
    fail_once();
    hold_now();
  }
  if (g_hold == "shim" || g_hold == "canceled") {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    stop_at(SYS_write);
    fail_once();
    hold_now();
  }
  if (g_hold == "index") {  // a caller in a file that the index does not know is looked up
    void* const library = dlopen("libstops_auditor.so", RTLD_NOW);
    const auto pass = reinterpret_cast<long (*)(Call)>(dlsym(library, "kshim_test_call"));
    if (pass == nullptr) fail("no library");
    stop_at(SYS_process_vm_readv);
    pass(function("cuLaunchKernel").call);
    hold_now();
  }
  fail("nothing is held");
}

void hold() {
  if (g_hold == "none") return;
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, holder, nullptr) != 0) fail("no thread");
  if (g_hold != "shim" && g_hold != "canceled" && g_hold != "index") {
    wait_until_held();
    return;
  }
  while (!g_filtered.load()) usleep(1000);
  pollfd notice{g_notices, POLLIN, 0};
  while (!g_holding.load() && poll(&notice, 1, 10) == 0) {
  }
  if (g_hold != "canceled") return;
  pthread_cancel(thread);
  // It may be a while on a busy machine until it writes again.
  while (pthread_tryjoin_np(thread, nullptr) != 0) {
    if (poll(&notice, 1, 50) != 1 || (notice.revents & POLLIN) == 0) continue;
    alignas(8) char asked[sizeof(seccomp_notif) + 64] = {};
    alignas(8) char answer[sizeof(seccomp_notif_resp) + 64] = {};
    auto* const question = reinterpret_cast<seccomp_notif*>(asked);
    auto* const reply = reinterpret_cast<seccomp_notif_resp*>(answer);
    if (ioctl(g_notices, SECCOMP_IOCTL_NOTIF_RECV, question) != 0) continue;
    reply->id = question->id;
    reply->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    ioctl(g_notices, SECCOMP_IOCTL_NOTIF_SEND, reply);
  }
}

// --- what is entered
// -------------------------------------------------------------------------------------------------

extern "C" void call_handler(int) { call("cuLaunchKernel"); }
extern "C" void exit_handler(int) { exit(0); }
extern "C" void quick_handler(int) { _exit(0); }

void raise_with(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

void wait_for(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) fail("no child");
  char text[32];
  std::snprintf(text, sizeof text, "child %x", static_cast<unsigned>(status));
  say(text);
}

[[noreturn]] void exec_self() {
  const char* argv[] = {g_self, "none", "end-return", "idle", nullptr};
  execv(g_self, const_cast<char**>(argv));
  fail("no exec");
}

[[noreturn]] void end(const std::string& how) {
  if (how == "exit") exit(0);
  if (how == "_exit") _exit(0);
  if (how == "_Exit") _Exit(0);
  if (how == "quick_exit") quick_exit(0);
  if (how == "abort") abort();
  if (how == "exec") exec_self();
  if (how == "kill") kill(getpid(), SIGTERM);
  if (how == "exit_group") syscall(SYS_exit_group, 0);
  if (how == "handler-exit") raise_with(exit_handler);
  if (how == "handler-_exit") raise_with(quick_handler);
  if (how == "call") {
    call("cuLaunchKernel");
    syscall(SYS_exit_group, 0);
  }
  if (how == "call-exit") {
    call("cuLaunchKernel");
    exit(0);
  }
  fail("unknown end");
}

void destroy(void*) { call("cuLaunchKernel"); }
void* thread_with_storage(void* key) {
  pthread_setspecific(*static_cast<pthread_key_t*>(key), key);
  return nullptr;
}

void enter(const std::string& entry) {
  const auto rest = [&entry](const char* prefix) -> const char* {
    return entry.rfind(prefix, 0) == 0 ? entry.c_str() + std::strlen(prefix) : nullptr;
  };
  if (entry == "calls") {
    for (const Function& row : g_functions) {
      say(row.name);
      row.call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    }
  } else if (const char* name = rest("call:"); name != nullptr) {
    call(name);
  } else if (entry == "dlsym-handle") {
    dlsym(g_driver_handle, "cuMemAlloc_v2");
  } else if (entry == "dlsym-default") {
    dlsym(RTLD_DEFAULT, "cuInit");
  } else if (entry == "dlsym-next") {
    dlsym(RTLD_NEXT, "cuInit");
  } else if (entry == "dlsym-other") {
    dlsym(RTLD_DEFAULT, "no_such_name");
  } else if (entry == "dlclose") {
    dlclose(g_driver_handle);
  } else if (entry == "dlvsym") {
    dlvsym(RTLD_DEFAULT, "cudaMalloc", "libcudart.so.12");
  } else if (const char* forked = rest("fork-"); forked != nullptr) {
    const pid_t child = fork();
    if (child == 0) end(forked);
    wait_for(child);
  } else if (const char* shared = rest("vfork-"); shared != nullptr) {
    const pid_t child = vfork();
    if (child == 0) {
      if (std::strcmp(shared, "exec") == 0) exec_self();
      if (std::strcmp(shared, "call") == 0) call("cuLaunchKernel");
      _exit(0);
    }
    wait_for(child);
  } else if (const char* cloned = rest("clone-"); cloned != nullptr) {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) end(cloned);
    wait_for(child);
  } else if (entry == "spawn") {
    const char* argv[] = {g_self, "none", "end-return", "idle", nullptr};
    pid_t child = -1;
    if (posix_spawn(&child, g_self, nullptr, nullptr, const_cast<char**>(argv), environ) != 0)
      fail("no spawn");
    wait_for(child);
  } else if (entry == "thread-end") {
    static pthread_key_t key;
    pthread_t thread{};
    pthread_key_create(&key, destroy);
    if (pthread_create(&thread, nullptr, thread_with_storage, &key) != 0) fail("no thread");
    pthread_join(thread, nullptr);
  } else if (entry == "handler-call") {
    raise_with(call_handler);
  } else if (const char* how = rest("end-"); how != nullptr) {
    end(how);
  } else {
    fail("unknown entry");
  }
  say("returned");
  syscall(SYS_exit_group, 0);
}

std::string g_entry;
void* enter_in_a_thread(void*) {
  enter(g_entry);
  return nullptr;
}

}  // namespace

extern "C" {
[[noreturn, gnu::visibility("default")]] void cell_hold_now() { hold_now(); }

__attribute__((visibility("default"))) int cell_main(int argc, char** argv);
int cell_main(int argc, char** argv) {
  if (argc < 4) return 2;
  g_self = argv[0];
  g_hold = argv[1];
  g_entry = argv[2];
  if (std::strcmp(argv[3], "idle") == 0) return 0;  // without CUDA
  if (g_hold == "malloc") mallopt(M_ARENA_MAX, 1);
  g_driver_handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver_handle == nullptr) fail(dlerror());
  if (std::strcmp(argv[3], "warm") == 0) {
    call("cuInit");
    refuse_all();
    fail_once();
  }
  refuse_all();
  if (g_hold == "gil") {
    pthread_t thread{};
    if (pthread_create(&thread, nullptr, enter_in_a_thread, nullptr) != 0) fail("no thread");
    block();
  }
  hold();
  if (g_entry == "end-return") return 0;
  enter(g_entry);
  return 0;
}
}

#if !defined(CELL_LIBRARY)
int main(int argc, char** argv) { return cell_main(argc, argv); }
#endif

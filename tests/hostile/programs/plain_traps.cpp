// SPDX-License-Identifier: Apache-2.0
// Signals that cannot be blocked inside the shim: SIGSYS, which a seccomp filter of the program raises for
// the shim's own system calls, and SIGTRAP.
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>

#include "plain.h"

namespace hostile {
namespace {

alignas(64) char g_stack[1 << 16];
volatile sig_atomic_t g_traps = 0;
volatile sig_atomic_t g_damaged = 0;
sigjmp_buf g_out;
bool g_jumps = false;  // traps go on while the program ends, when there are no more words
bool g_fails = false;

bool has_word(std::string_view wanted) {
  for (const std::string& word : g_words)
    if (word == wanted) return true;
  return false;
}

/// The kernel raises SIGSYS for these two.
bool trap_system_calls() {
  sock_filter rows[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof rows / sizeof rows[0], rows};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void refuse(void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  registers.gregs[REG_RAX] = -ENOSYS;
#else
  registers.regs[0] = -ENOSYS;
#endif
}

using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);

void handle(int signal, void (*handler)(int, siginfo_t*, void*), int flags, SetAction set = sigaction) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  set(signal, &action, nullptr);
}

/// Fills a frame of its own, fails, and looks whether the frame is whole.
void fail_and_look(int, siginfo_t*, void*) {
  volatile char frame[2048];
  for (std::size_t i = 0; i < sizeof frame; ++i) frame[i] = static_cast<char>(i);
  fail_as("waits");
  for (std::size_t i = 0; i < sizeof frame; ++i)
    if (frame[i] != static_cast<char>(i)) g_damaged = g_damaged + 1;
}

void answer(int, siginfo_t*, void* context) {
  refuse(context);
  g_traps = g_traps + 1;
  if (g_jumps && g_traps == 1) siglongjmp(g_out, 1);
  if (g_fails && g_traps == 1) {
    fail_as("in a trap");
    fail_as("in a trap, too");
  }
}

void fail_for_parent(int, siginfo_t* info, void* context) {
  refuse(context);
  if (info->si_syscall == SYS_getppid) fail_as("handler");
}

void fail_masked() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (has_word("pending")) raise(SIGSYS);
  const int traps = g_traps;
  fail_as("masked");
  if (has_word("pending") && g_traps != traps) g_damaged = g_damaged + 1;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (has_word("pending") && g_traps != traps + 1) g_damaged = g_damaged + 1;
}

[[maybe_unused]] long g_steps = 0;
std::uintptr_t g_low = 0;
std::uintptr_t g_high = 0;

/// Where the code of the library of that name is.
int find_code(dl_phdr_info* info, std::size_t, void* name) {
  if (info->dlpi_name == nullptr || std::strstr(info->dlpi_name, static_cast<const char*>(name)) == nullptr)
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    g_low = info->dlpi_addr + part.p_vaddr;
    g_high = g_low + part.p_memsz;
  }
  return 1;
}
void find_code(const char* name) { dl_iterate_phdr(find_code, const_cast<char*>(name)); }

#if defined(__x86_64__)
volatile char g_dispatched = 0;

/// Makes each system call again. The mask, which the return from a handler would restore, is emulated by code
/// that trusts the addresses.
void emulate(int, siginfo_t* info, void* context) {
  g_dispatched = 0;
  g_traps = g_traps + 1;
  auto& user = *static_cast<ucontext_t*>(context);
  auto& registers = user.uc_mcontext.gregs;
  if (info->si_syscall == SYS_rt_sigprocmask) {
    const auto* set = reinterpret_cast<const volatile std::uint64_t*>(registers[REG_RSI]);
    auto* before = reinterpret_cast<std::uint64_t*>(registers[REG_RDX]);
    std::uint64_t mask = 0;
    std::memcpy(&mask, &user.uc_sigmask, sizeof mask);
    const std::uint64_t given = set == nullptr ? 0 : *set;
    if (before != nullptr) *before = mask;
    const auto how = static_cast<int>(registers[REG_RDI]);
    if (set != nullptr) mask = how == SIG_BLOCK ? mask | given : how == SIG_UNBLOCK ? mask & ~given : given;
    std::memcpy(&user.uc_sigmask, &mask, sizeof mask);
    registers[REG_RAX] = set != nullptr && (how < 0 || how > 2) ? -EINVAL : 0;
  } else {
    const long answer = syscall(info->si_syscall, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                                registers[REG_R10], registers[REG_R8], registers[REG_R9]);
    registers[REG_RAX] = answer == -1 ? -errno : answer;
  }
  g_dispatched = 1;
}
#endif

}  // namespace

/// Emulates the system calls of all code but libc's, before the driver is first used or after a failure
/// ("late").
int emulates() {
#if defined(__x86_64__)
  driver();
  if (has_word("late")) {
    start();
    fail_as("before");
  }
  find_code("libc.so.6");
  // Before glibc 2.34 the program's sigaction is libpthread's, and so is the code that a handler returns to.
  void* const libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  handle(SIGSYS, emulate, 0, reinterpret_cast<SetAction>(dlsym(libc, "sigaction")));
  if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, g_low, g_high - g_low, &g_dispatched) != 0)
    return 77;
  g_dispatched = 1;
  start();
  const int first = fail_as("emulated");
  static char image[1 << 13] = "no image";
  long module = 0;
  const int second = driver().call("cuModuleLoadData", word(&module), word(image));
  g_dispatched = 0;
  std::printf("%d %d\n", first, second);
  return 0;
#else
  return 77;
#endif
}

/// "waits": a call fails in a handler on the signal stack; SIGSYS has a handler on the same stack. "jumps":
/// it leaves the shim by siglongjmp; then another thread fails, with "crowd" 1,500. "nodefer": the handlers
/// block nothing. "fails": calls fail in the handler of a SIGSYS that the shim's own system call raises.
/// "inside": a call fails in the handler of another SIGSYS. "masked": a call fails in a thread that blocks
/// all signals; with "pending" there is no filter, and a SIGSYS waits for the thread to let it in.
int traps() {
  const stack_t stack{g_stack, 0, sizeof g_stack};
  const int flags = has_word("nodefer") ? SA_NODEFER : 0;
  g_jumps = has_word("jumps");
  g_fails = has_word("fails");
  if (!has_word("inside")) sigaltstack(&stack, nullptr);
  start();
  if (has_word("late")) fail_as("before");
  if (g_jumps) look_up();  // out of the call, not out of dlsym before it
  handle(SIGUSR1, fail_and_look, SA_ONSTACK | flags);
  if (has_word("inside"))
    handle(SIGSYS, fail_for_parent, 0);
  else
    handle(SIGSYS, answer, flags | (g_fails ? 0 : SA_ONSTACK));
  if (!has_word("pending") && !trap_system_calls()) return 77;
  if (has_word("masked"))
    fail_masked();
  else if (has_word("inside"))
    syscall(SYS_getppid);
  else if (g_fails)
    fail_as("waits");
  else if (sigsetjmp(g_out, 1) == 0)
    raise(SIGUSR1);
  if (g_jumps) {
    raise(SIGUSR1);
    std::vector<std::thread> threads;
    for (int i = has_word("crowd") ? 1500 : 1; i > 0; --i) threads.emplace_back([] { fail_as("thread"); });
    for (std::thread& thread : threads) thread.join();
    stack_t now{};
    sigaltstack(nullptr, &now);
    if ((now.ss_flags & (SS_ONSTACK | SS_DISABLE)) != 0) g_damaged = g_damaged + 1;
  }
  std::printf("damaged: %d\n", static_cast<int>(g_damaged));
  std::printf("%d\n", fail_as("after"));
  return 0;
}

/// The processor's counter must not be read, or ("unmapped") the vDSO is not there any more; then a call
/// fails, and the program ends, with "_exit" by that.
int no_time() {
#if defined(__x86_64__)
  start();
  if (has_word("late")) fail_as("before");
  if (has_word("unmapped")) {
    const auto vdso = reinterpret_cast<void*>(getauxval(AT_SYSINFO_EHDR));
    bool gone = false;  // the kernel takes it as a whole
    for (std::size_t pages = 1; pages <= 4 && !gone && vdso != nullptr; ++pages)
      gone = munmap(vdso, pages * 4096) == 0;
    if (!gone) return 77;
  } else if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) {
    return 77;
  }
  std::printf("%d\n", fail_as("after"));
  std::fflush(stdout);
  if (has_word("_exit")) _exit(3);
  return 3;
#else
  return 77;
#endif
}

/// WORD 0: at this step inside libkshim.so, in the handler of SIGTRAP, three calls fail.
int stepped() {
#if defined(__x86_64__)
  static long at = 0;
  at = std::stol(g_words[0]);
  const stack_t stack{g_stack, 0, sizeof g_stack};
  sigaltstack(&stack, nullptr);
  start();
  fail_as("before");
  find_code("libkshim.so");
  const auto step = [](int, siginfo_t*, void* context) {
    const auto here =
        static_cast<std::uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    if (here < g_low || here >= g_high || ++g_steps != at) return;
    fail_as("step 1");
    fail_as("step 2");
    fail_as("step 3");
  };
  handle(SIGTRAP, step, SA_ONSTACK);
  asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
  const int answered = fail_as("work");
  asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
  std::printf("%d\n", answered);
  return 0;
#else
  return 77;
#endif
}

}  // namespace hostile

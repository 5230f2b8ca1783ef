// SPDX-License-Identifier: Apache-2.0
// sealed HOW END [DRIVER [unused]]: a program without CUDA that forbids itself all system calls but a few and
// ends. HOW: what another one does: kill (the kernel ends the program), trap (it raises SIGSYS), dispatch (it
// raises SIGSYS for every call that is not made in libc itself, as Wine has it). END: return, exit or _exit.
// With DRIVER, it is a child of a program that uses CUDA, that has closed a library, and that unloads a
// module when it ends, which the driver refuses in a child (runtimes do so); of one that has only opened it.
// As a library (AT_START): its constructor forbids them, as that of Cloudflare's sandbox.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#define ALLOW(number) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void on_call(int signal, siginfo_t* info, void* unused) {
  char text[64];
  (void)signal, (void)unused;
  const int size = snprintf(text, sizeof text, "system call %d\n", info->si_syscall);
  if (write(STDERR_FILENO, text, (size_t)size) < 0) _exit(98);
  _exit(99);
}

static int seal(unsigned action) {
  struct sock_filter rows[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(SYS_read),
      ALLOW(SYS_write),
      ALLOW(SYS_exit),
      ALLOW(SYS_exit_group),
      ALLOW(SYS_rt_sigreturn),
      ALLOW(SYS_fstat),
#ifdef SYS_newfstatat
      ALLOW(SYS_newfstatat),
#endif
      ALLOW(SYS_brk),
      ALLOW(SYS_munmap),
      BPF_STMT(BPF_RET | BPF_K, action),
  };
  const struct sock_fprog filter = {sizeof rows / sizeof rows[0], rows};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

#ifdef AT_START
__attribute__((constructor)) static void start(void) {
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  if (!seal(SECCOMP_RET_KILL_PROCESS)) _exit(77);
}
#else
static unsigned long g_begin, g_size;
static char g_selector;  // 0: all calls are allowed
static int find_libc(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  if (strstr(info->dlpi_name, "libc.so.6") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
      g_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      g_size = info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

static int (*g_unload)(long);
static int* g_answer;
static void unload(void) {
  *g_answer = 3;
  g_unload(0x70000000);
}

static int use(const char* path, void* driver) {
  typedef int Function(long, long);
  Function *init = NULL, *allocate = NULL;
  *(void**)&init = dlsym(driver, "cuInit");
  *(void**)&allocate = dlsym(driver, "cuMemAlloc_v2");
  if (init(0, 0) != 0) return 97;
  *(void**)&g_unload = dlsym(driver, "cuModuleUnload");
  g_answer = dlsym(driver, "plain_driver");
  g_answer[0] = 2;
  allocate(0, 1);
  atexit(unload);
  dlclose(dlopen(path, RTLD_NOW));
  return 0;
}

// 0 in the child; else what the child ended with.
static int fork_beside(const char* path, int uses) {
  void* driver = dlopen(path, RTLD_NOW);
  const int failed = uses ? use(path, driver) : 0;
  if (failed != 0) return failed;
  fflush(stdout);
  int status = 0;
  const pid_t child = fork();
  if (child == 0) return 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
  if (argc < 3 || sigaction(SIGSYS, &action, NULL) != 0) return 2;
  dl_iterate_phdr(find_libc, NULL);
  puts("open");
  const int child = argc > 3 ? fork_beside(argv[3], argc == 4) : 0;
  if (child != 0) return child;
  if (strcmp(argv[1], "dispatch") == 0) {
    if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, g_begin, g_size, &g_selector) != 0) return 77;
    g_selector = 1;
  } else if (!seal(strcmp(argv[1], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_TRAP)) {
    return 77;
  }
  // What waits in stdout's buffer is written when the program ends.
  printf("sealed %d\n", dlsym(RTLD_DEFAULT, "puts") != NULL);
  if (strcmp(argv[2], "_exit") == 0) {
    fflush(stdout);
    _exit(3);
  }
  if (strcmp(argv[2], "exit") == 0) exit(3);
  return 3;
}
#endif

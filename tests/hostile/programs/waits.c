// SPDX-License-Identifier: Apache-2.0
// waits SCENARIO: a process that uses CUDA waits for children that fail, in ways that are hard on a waitpid
// between it and libc. With OWN_WAITPID it has a waitpid of its own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static const char* g_self;

static pid_t fork_child(int status) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) _exit(status);
  return child;
}

static void tell(const char* what, pid_t got, pid_t wanted, int status) {
  printf("%s: %s status %x\n", what,
         got == wanted ? "it"
         : got == 0    ? "none"
         : got < 0     ? "error"
                       : "another",
         (unsigned)status);
}

static volatile sig_atomic_t g_reaped, g_failed, g_bad_errno;
static void reap(int signal) {
  (void)signal;
  const int before = errno;
  int status = 0;
  for (;;) {
    errno = 4711;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (child <= 0) break;
    if (errno != 4711) g_bad_errno = g_bad_errno + 1;
    g_reaped = g_reaped + 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3) g_failed = g_failed + 1;
  }
  errno = before;
}

/// Children end while the program is in malloc and in the driver.
static int in_handler(int (*init)(unsigned)) {
  struct sigaction action = {.sa_handler = reap, .sa_flags = SA_RESTART};
  sigaction(SIGCHLD, &action, NULL);
  for (int i = 0; i < 40; ++i) fork_child(3);
  while (g_reaped < 40) {
    free(malloc(100000));
    init(0);
  }
  printf("handler: %d of %d failed, errno changed %d times\n", (int)g_failed, (int)g_reaped,
         (int)g_bad_errno);
  return 0;
}

static volatile int g_cleaned;
static void clean(void* unused) {
  (void)unused;
  g_cleaned = 1;
}
static void* wait_forever(void* child) {
  int status = 0;
  pthread_cleanup_push(clean, NULL);
  waitpid(*(pid_t*)child, &status, 0);
  pthread_cleanup_pop(0);
  return NULL;
}
static int canceled(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  pthread_t thread;
  pthread_create(&thread, NULL, wait_forever, &child);
  usleep(50000);
  pthread_cancel(thread);
  void* result = NULL;
  pthread_join(thread, &result);
  kill(child, SIGKILL);
  tell(result == PTHREAD_CANCELED && g_cleaned ? "canceled" : "not canceled", waitpid(child, &status, 0),
       child, status);
  child = fork_child(4);
  tell("after it", waitpid(child, &status, 0), child, status);
  return 0;
}

static int after_vfork(void) {
  int status = 0;
  char* const argv[] = {(char*)g_self, "fail", NULL};
  pid_t child = vfork();
  if (child == 0) {
    execv(g_self, argv);
    _exit(127);
  }
  tell("exec", waitpid(child, &status, 0), child, status);
  child = vfork();
  if (child == 0) _exit(127);
  tell("_exit", waitpid(child, &status, 0), child, status);
  if (posix_spawn(&child, g_self, NULL, NULL, argv, environ) != 0) return 1;
  tell("spawn", waitpid(child, &status, 0), child, status);
  return 0;
}

static int odd_calls(void) {
  int status = 0;
  siginfo_t info;
  pid_t child = fork_child(5);
  while ((waitpid(child, &status, WNOHANG)) == 0) usleep(100);
  tell("polled", child, child, status);
  child = fork_child(6);
  memset(&info, 0, sizeof info);
  waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
  tell("looked at", info.si_pid, child, info.si_status);
  tell("then", waitpid(child, &status, 0), child, status);
  child = fork_child(7);
  tell("no status", waitpid(child, NULL, 0), child, 0);
  child = fork_child(8);
  int* const nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = 0;
  const pid_t got = waitpid(child, nowhere, 0);
  printf("bad pointer: %s errno %d\n", got == child ? "it" : "error", errno);
  errno = 0;
  tell("nobody", waitpid(child, &status, 0), child, errno);
  child = fork();
  if (child == 0) {
    raise(SIGKILL);
  }
  tell("killed", waitpid(child, &status, 0), child, status);
  child = fork();
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  tell("stopped", waitpid(child, &status, WUNTRACED), child, status);
  kill(child, SIGCONT);
  tell("well", waitpid(child, &status, 0), child, status);
  return 0;
}

static void* fail_many(void* unused) {
  for (int i = 0; i < 60; ++i) {
    int status = 0;
    const pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) syscall(SYS_exit_group, 9);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 9) return unused;
  }
  return NULL;
}
static int many(void) {
  pthread_t threads[8];
  int bad = 0;
  for (int i = 0; i < 8; ++i) pthread_create(threads + i, NULL, fail_many, &bad);
  for (int i = 0; i < 8; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    bad += result != NULL;
  }
  printf("many: %d wrong\n", bad);
  return 0;
}

#if defined(OWN_WAITPID)
__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int* status, int options) {
  if (options == 0) printf("own\n");
  return (pid_t)syscall(SYS_wait4, pid, status, options, NULL);
}
#endif

int main(int argc, char** argv) {
  g_self = argv[0];
  if (argc < 2) return 2;
  const char* scenario = argv[1];
  if (strcmp(scenario, "fail") == 0) return 3;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return 91;
  int (*init)(unsigned) = NULL;
  *(void**)&init = dlsym(driver, "cuInit");
  if (strcmp(scenario, "idle") != 0) init(0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(scenario, "handler") == 0) return in_handler(init);
  if (strcmp(scenario, "canceled") == 0) return canceled();
  if (strcmp(scenario, "vfork") == 0) return after_vfork();
  if (strcmp(scenario, "many") == 0) return many();
  return odd_calls();
}

// SPDX-License-Identifier: Apache-2.0
// quick_ends _exit|_Exit: ends in that way; quick_ends waitpid|dlsym: calls it; quick_ends BYTES [waitpid]:
// ends by exit, or waits for a child, on a stack of that size. The status is 3. As a library: has one of the
// first two functions itself, by OWN_LOWER or OWN_UPPER; with OWN_BOTH_WAYS its _exit ends by _Exit; with
// OWN_VERSION, all but _Exit; with OWN_RESOLVER, _exit and waitpid, which a resolver chooses.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(OWN_LOWER) || defined(OWN_UPPER) || defined(OWN_BOTH_WAYS) || defined(OWN_VERSION) || \
    defined(OWN_RESOLVER)
#include <sys/syscall.h>
static void say(const char* text) {
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) abort();
}
#endif
#if defined(OWN_VERSION)
pid_t waitpid(pid_t child, int* status, int options) {
  say("own waitpid\n");
  (void)child, (void)status, (void)options;
  return -1;
}
void* dlsym(void* handle, const char* name) {
  say("own dlsym\n");
  (void)handle, (void)name;
  return NULL;
}
#endif
#if defined(OWN_RESOLVER)
static void own_exit(int status) {
  say("own _exit\n");
  syscall(SYS_exit_group, status);
}
static pid_t own_waitpid(pid_t child, int* status, int options) {
  say("own waitpid\n");
  return (pid_t)syscall(SYS_wait4, child, status, options, NULL);
}
typedef void Exit(int status);
typedef pid_t Wait(pid_t child, int* status, int options);
__attribute__((used)) static Exit* resolve_exit(void) { return own_exit; }
__attribute__((used)) static Wait* resolve_wait(void) { return own_waitpid; }
void _exit(int status) __attribute__((ifunc("resolve_exit")));
pid_t waitpid(pid_t child, int* status, int options) __attribute__((ifunc("resolve_wait")));
#elif defined(OWN_LOWER) || defined(OWN_VERSION)
void _exit(int status) {
  say("own _exit\n");
  syscall(SYS_exit_group, status);
  abort();
}
#elif defined(OWN_UPPER)
void _Exit(int status) {
  say("own _Exit\n");
  syscall(SYS_exit_group, status);
  abort();
}
#elif defined(OWN_BOTH_WAYS)
void _exit(int status) {
  say("own _exit\n");
  _Exit(status);
}
#else
static void end(void) { exit(3); }
static pid_t start_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(3);
  return child;
}
static pid_t g_child;
static int g_status;
static void reap(void) { waitpid(g_child, &g_status, 0); }
static int on_stack(size_t size, void (*work)(void)) {
  enum { kPage = 4096 };
  static ucontext_t fiber, here;
  const size_t pages = (size + kPage - 1) / kPage * kPage;
  char* memory = mmap(NULL, pages + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + kPage, pages, PROT_READ | PROT_WRITE) != 0) return 2;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = memory + kPage;
  fiber.uc_stack.ss_size = size;
  fiber.uc_link = &here;
  makecontext(&fiber, work, 0);
  swapcontext(&here, &fiber);
  return WEXITSTATUS(g_status);
}
int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "_exit") == 0) _exit(3);
  if (argc == 2 && strcmp(argv[1], "_Exit") == 0) _Exit(3);
  if (argc == 2 && strcmp(argv[1], "dlsym") == 0) return dlsym(RTLD_DEFAULT, "printf") != NULL ? 3 : 4;
  if (argc == 2 && strcmp(argv[1], "waitpid") == 0) {
    g_child = start_child();
    reap();
    return WEXITSTATUS(g_status);
  }
  if (argc == 2) return on_stack((size_t)atol(argv[1]), end);
  g_child = start_child();
  return argc == 3 ? on_stack((size_t)atol(argv[1]), reap) : 2;
}
#endif

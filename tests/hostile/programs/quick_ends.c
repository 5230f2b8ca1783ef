// SPDX-License-Identifier: Apache-2.0
// quick_ends _exit|_Exit: ends in that way; quick_ends dlsym: calls it; quick_ends BYTES: ends by exit on a
// stack of that size. The status is 3. As a library: has one of the first two functions itself, by OWN_LOWER
// or OWN_UPPER; with OWN_BOTH_WAYS its _exit ends by _Exit; with OWN_VERSION, all but _Exit; with
// OWN_RESOLVER, an _exit that a resolver chooses.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
typedef void Exit(int status);
__attribute__((used)) static Exit* resolve_exit(void) { return own_exit; }
void _exit(int status) __attribute__((ifunc("resolve_exit")));
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
static int end_on_stack(size_t size) {
  enum { kPage = 4096 };
  static ucontext_t fiber, here;
  const size_t pages = (size + kPage - 1) / kPage * kPage;
  char* memory = mmap(NULL, pages + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + kPage, pages, PROT_READ | PROT_WRITE) != 0) return 2;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = memory + kPage;
  fiber.uc_stack.ss_size = size;
  fiber.uc_link = &here;
  makecontext(&fiber, end, 0);
  swapcontext(&here, &fiber);
  return 2;
}
int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "_exit") == 0) _exit(3);
  if (argc == 2 && strcmp(argv[1], "_Exit") == 0) _Exit(3);
  if (argc == 2 && strcmp(argv[1], "dlsym") == 0) return dlsym(RTLD_DEFAULT, "printf") != NULL ? 3 : 4;
  return argc == 2 ? end_on_stack((size_t)atol(argv[1])) : 2;
}
#endif

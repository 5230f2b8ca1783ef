// SPDX-License-Identifier: Apache-2.0
// quick_ends _exit|_Exit: ends in that way; quick_ends BYTES: by exit on a stack of that size. As a library:
// has one of the two functions itself, by OWN_LOWER or OWN_UPPER; with OWN_BOTH_WAYS its _exit ends by _Exit.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(OWN_LOWER) || defined(OWN_UPPER) || defined(OWN_BOTH_WAYS)
#include <sys/syscall.h>
static void say(const char* text) {
  if (write(STDOUT_FILENO, text, strlen(text)) < 0) abort();
}
#endif
#if defined(OWN_LOWER)
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
static int end_on(size_t size) {
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
  return swapcontext(&here, &fiber);
}
int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "_exit") == 0) _exit(3);
  if (argc == 2 && strcmp(argv[1], "_Exit") == 0) _Exit(3);
  return argc == 2 ? end_on((size_t)atol(argv[1])) : 2;
}
#endif

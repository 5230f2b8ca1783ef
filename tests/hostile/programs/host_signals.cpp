// SPDX-License-Identifier: Apache-2.0
// Hosts whose signal handlers do as they like.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "host.h"

namespace hostile {

volatile sig_atomic_t g_signals = 0;
void count(int) { g_signals = g_signals + 1; }

/// System calls are interrupted all the time.
int storm() {
  struct sigaction action {};
  action.sa_handler = count;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 150}, {0, 150}};
  if (attach() != 0) return 1;
  setitimer(ITIMER_REAL, &often, nullptr);
  void* module = nullptr;
  int wrong = 0;
  for (int i = 0; i < 2000; ++i) {
    if (load(g_bad, &module) != 209) ++wrong;
    if (load(g_good, &module) != 0) ++wrong;
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("wrong: %d\n", wrong);
  return g_signals > 0 ? 0 : 2;
}

void call_the_driver(int) {
  void* module = nullptr;
  std::printf("handler: %d\n", load(g_bad, &module));
}

/// A small stack with the host's own data right below it, where a stack that overflows does not meet a guard.
struct StackWithNeighbor {
  alignas(4096) char data[65536];
  alignas(4096) char memory[16384];
  StackWithNeighbor() { std::memset(data, 'd', sizeof data); }
  void tell() const {
    std::printf("below: %s\n",
                std::count(data, std::end(data), 'd') == sizeof data ? "whole" : "overwritten");
  }
};

/// On a stack of its own, of the size that such stacks have had for decades.
int handler_calls() {
  if (attach() != 0) return 1;
  static StackWithNeighbor place;
  stack_t stack{};
  stack.ss_sp = place.memory;
  stack.ss_size = sizeof place.memory;
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = call_the_driver;
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  place.tell();
  use("host");
  return 0;
}

/// On a thread whose stack is memory of the host's, which has no guard.
int thread_on_own_memory() {
  if (attach() != 0) return 1;
  const auto place = std::make_unique<StackWithNeighbor>();
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread{};
  const auto run = [](void*) -> void* {
    use("thread");
    return nullptr;
  };
  if (pthread_attr_setstack(&attributes, place->memory, sizeof place->memory) != 0 ||
      pthread_create(&thread, &attributes, run, nullptr) != 0)
    return 1;
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  place->tell();
  return 0;
}

ucontext_t g_thread;
ucontext_t g_fiber;
void run_fiber() { use("fiber"); }

/// On the stack of a fiber, in memory of malloc's.
int fiber_calls() {
  if (attach() != 0) return 1;
  const auto place = std::make_unique<StackWithNeighbor>();
  if (getcontext(&g_fiber) != 0) return 1;
  g_fiber.uc_stack.ss_sp = place->memory;
  g_fiber.uc_stack.ss_size = sizeof place->memory;
  g_fiber.uc_link = &g_thread;
  makecontext(&g_fiber, run_fiber, 0);
  swapcontext(&g_thread, &g_fiber);
  place->tell();
  return 0;
}

sigjmp_buf g_back;
void jump_back(int) { siglongjmp(g_back, 1); }

/// Again and again out of wherever the timer finds it, at times out of the shim. Not out of the driver, whose
/// locks would stay locked: the calls fail before it takes any.
int jumps() {
  struct sigaction action {};
  action.sa_handler = jump_back;
  sigaction(SIGALRM, &action, nullptr);
  const auto get = driver_function<int (*)(void**, void*, const char*)>("cuModuleGetFunction");
  void* function = nullptr;
  if (attach() != 0) return 1;
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
  answer =
      get(&function, nullptr, "last");  // a signal that waits for a call's end may come before its answer
  std::printf("%d\n", answer.load());
  return 0;
}

}  // namespace hostile

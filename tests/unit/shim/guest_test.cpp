// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>
#include <vector>

#include "guest/clock.h"
#include "guest/reentry_guard.h"
#include "guest/safe_memory.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "process/python/layout.h"
#include "process/stack/native.h"
#include "process/stack/walk.h"

// walk.cpp's stand-ins for libc's.
extern "C" [[noreturn]] void __wrap_abort();

namespace kshim::shim {
namespace {

TEST(Walk, WhatTheUnwinderAbortsIsGivenUp) {
  int steps = 0;
  const auto fails = [](void* count) {
    ++*static_cast<int*>(count);
    __wrap_abort();
  };
  const auto works = [](void* count) { ++*static_cast<int*>(count); };
  EXPECT_FALSE(guarded_walk(fails, &steps));
  EXPECT_TRUE(guarded_walk(works, &steps));
  EXPECT_FALSE(guarded_walk(fails, &steps));
  EXPECT_EQ(steps, 3);
}

/// Overwrites the registers that a call keeps, and does not come back to restore them.
void spoil_registers(void*) {
#if defined(__aarch64__)
  asm volatile(
      "mov x19, xzr; mov x20, xzr; mov x21, xzr; mov x22, xzr; mov x23, xzr; mov x24, xzr; mov x25, xzr\n\t"
      "mov x26, xzr; mov x27, xzr; mov x28, xzr; fmov d8, xzr; fmov d9, xzr; fmov d10, xzr; fmov d11, xzr\n\t"
      "fmov d12, xzr; fmov d13, xzr; fmov d14, xzr; fmov d15, xzr" ::
          : "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "d8", "d9", "d10", "d11",
            "d12", "d13", "d14", "d15");
#else
  asm volatile("xor %%ebx, %%ebx; xor %%r12, %%r12; xor %%r13, %%r13; xor %%r14, %%r14; xor %%r15, %%r15" ::
                   : "rbx", "r12", "r13", "r14", "r15");
#endif
  __wrap_abort();
}

TEST(Walk, WhoeverAskedHasItsRegistersAgain) {
  volatile long seed = 1;
  volatile double part = 0.5;
  const long a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4, f = seed + 5, g = seed + 6,
             h = seed + 7, i = seed + 8, j = seed + 9;
  const double k = part, l = part * 2, m = part * 3, n = part * 4, o = part * 5, p = part * 6, q = part * 7,
               r = part * 8;
  EXPECT_FALSE(guarded_walk(spoil_registers, nullptr));
  const std::array<long, 10> numbers{a, b, c, d, e, f, g, h, i, j};
  const std::array<double, 8> parts{k, l, m, n, o, p, q, r};
  for (std::size_t at = 0; at < numbers.size(); ++at) EXPECT_EQ(numbers[at], static_cast<long>(at) + 1);
  for (std::size_t at = 0; at < parts.size(); ++at) EXPECT_EQ(parts[at], 0.5 * static_cast<double>(at + 1));
}

const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Two pages; only the first is there.
class HalfMapped {
 public:
  HalfMapped()
      : start_(static_cast<char*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(start_ + kPage, kPage, PROT_NONE);  // a hole would be filled by the thread that maps next
    std::memset(start_, 'x', kPage);
  }
  ~HalfMapped() { munmap(start_, 2 * kPage); }
  HalfMapped(const HalfMapped&) = delete;
  HalfMapped& operator=(const HalfMapped&) = delete;
  std::uintptr_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(start_) + offset; }

 private:
  char* start_;
};

bool reads_carefully() {
  const HalfMapped memory;
  char copy[16] = {};
  errno = 4711;
  return read_memory(memory.at(kPage - 16), copy, 16) && copy[15] == 'x' &&
         !read_memory(memory.at(kPage - 8), copy, 16) && !read_memory(8, copy, 1) &&
         !read_memory(~std::uintptr_t{0} - 3, copy, 16) &&
         readable_bytes(memory.at(10), 3 * kPage) == kPage - 10 && readable_bytes(memory.at(kPage), 1) == 0 &&
         readable_bytes(memory.at(0), 100) == 100 && errno == 4711;
}

/// Whichever of eight pages can be read, from any place on: two pages are asked for at a time.
bool finds_each_end() {
  constexpr std::size_t kPages = 8;
  void* const memory =
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  bool right = true;
  for (std::size_t closed = 0; closed < kPages; ++closed) {
    const std::uintptr_t end = start + closed * kPage;
    mprotect(reinterpret_cast<void*>(end), kPage, PROT_NONE);
    for (std::uintptr_t from = start; from < end; from += 1000)
      for (std::size_t size = 1; from + size < start + kPages * kPage; size += 1500)
        right = right && readable_bytes(from, size) == std::min<std::size_t>(size, end - from);
    mprotect(reinterpret_cast<void*>(end), kPage, PROT_READ | PROT_WRITE);
  }
  munmap(memory, kPages * kPage);
  return right;
}

/// Answers a system call with EPERM, as container run times do; false where this machine does not allow that.
bool enter_sandbox(unsigned call) {
  std::array<sock_filter, 4> program{{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Exit status of a child that runs `test`; 128 + N when signal N ended it.
template <class Test>
int in_child(Test test) {
  const pid_t child = fork();
  if (child == 0) _exit(test());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ReadMemory, BadPointersCostAnAnswer) { EXPECT_TRUE(reads_carefully()); }
TEST(ReadMemory, FindsWhereReadableMemoryEnds) {
  EXPECT_EQ(in_child([] { return finds_each_end() ? 0 : 1; }), 0);
}

TEST(ReadMemory, AlsoWhereTheSandboxForbidsTheSystemCall) {
  constexpr int kNoSandbox = 77;
  const auto read = [](std::initializer_list<unsigned> refused, bool asked_before) {
    return in_child([=] {
      if (asked_before && !reads_carefully()) return 2;
      for (const unsigned call : refused)
        if (!enter_sandbox(call)) return kNoSandbox;
      return reads_carefully() ? 0 : 1;
    });
  };
  const int outcome = read({SYS_process_vm_readv}, false);
  if (outcome == kNoSandbox) GTEST_SKIP() << "this machine does not let a process give up system calls";
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(read({SYS_process_vm_readv}, true), 0);
}

TEST(NativeStack, HoldsCallersInnermostFirstAlsoOnOtherThreads) {
  static NativeStack g_stack;
  std::thread([] { g_stack.capture(); }).join();
  ASSERT_GE(g_stack.rows().size(), 1U);
  EXPECT_FALSE(g_stack.rows().back().object.empty());
  for (const report::FrameRow& row : g_stack.rows()) EXPECT_NE(row.offset, 0U);
}

TEST(Python, IsNotFoundWhereThereIsNone) {
  Python python;
  EXPECT_FALSE(find_python(python));
}

bool is_free() {
  const ReentryGuard guard;
  return static_cast<bool>(guard);
}

TEST(ReentryGuard, KeepsCallsFromInsideOut) {
  EXPECT_TRUE(is_free());
  {
    const ReentryGuard guard;
    EXPECT_TRUE(guard);
    EXPECT_FALSE(is_free());
    EXPECT_FALSE(is_free());
  }
  EXPECT_TRUE(is_free());
}

std::atomic<int> g_handled{0};

TEST(ReentryGuard, NoHandlerRunsInside) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++g_handled; };
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  {
    const ReentryGuard guard;
    pthread_kill(pthread_self(), SIGUSR1);
    EXPECT_EQ(g_handled.load(), 0);
  }
  EXPECT_EQ(g_handled.load(), 1);
}

sigjmp_buf g_outside;

// A fault's signal cannot be blocked: its handler may leave the shim for good. The jump restores the signal
// mask.
TEST(ReentryGuard, IsFreeAgainAfterAJumpOut) {
  if (sigsetjmp(g_outside, 1) == 0) {
    const ReentryGuard guard;
    siglongjmp(g_outside, 1);
  }
  EXPECT_TRUE(is_free());
}

TEST(TimedLock, IsTakenOverInTheChildOfFork) {
  static TimedLock g_lock;
  ASSERT_TRUE(g_lock.acquire());
  EXPECT_EQ(in_child([] { return g_lock.acquire() ? 0 : 1; }), 0);
  g_lock.release();
}

TEST(TimedLock, SaysThatItWasInherited) {
  static TimedLock g_lock;
  bool inherited = true;
  ASSERT_TRUE(g_lock.acquire(inherited));
  EXPECT_FALSE(inherited);
  EXPECT_EQ(in_child([] {
              bool from_parent = false;
              return g_lock.acquire(from_parent) && from_parent ? 0 : 1;
            }),
            0);
  g_lock.release();
}

TEST(TimedLock, EndsTheWaitForAThreadThatNeverReleasesIt) {
  static TimedLock g_lock;
  std::thread([] { EXPECT_TRUE(g_lock.acquire()); }).join();
  EXPECT_FALSE(g_lock.acquire());
  EXPECT_FALSE(g_lock.acquire());
  g_lock.release();
  EXPECT_TRUE(g_lock.acquire());
  g_lock.release();
}

// Together they hold it for more than 2 s.
TEST(TimedLock, IsHadByAllOfManyThreadsThatKeepReleasingIt) {
  static TimedLock g_lock;
  constexpr int kThreads = 64;
  constexpr int kRounds = 20;
  std::vector<std::thread> threads;
  std::atomic<int> acquired{0};
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&acquired] {
      for (int round = 0; round < kRounds; ++round) {
        if (!g_lock.acquire()) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ++acquired;
        g_lock.release();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(acquired, kThreads * kRounds);
}

TEST(Clock, IsLibcsWithoutLibc) {
  for (const clockid_t clock : {CLOCK_MONOTONIC, CLOCK_REALTIME}) {
    timespec before{}, ours{}, after{};
    clock_gettime(clock, &before);
    read_clock(clock, ours);
    clock_gettime(clock, &after);
    const auto value = [](const timespec& time) { return time.tv_sec * 1'000'000'000L + time.tv_nsec; };
    EXPECT_LE(value(before), value(ours));
    EXPECT_LE(value(ours), value(after));
  }
}

}  // namespace
}  // namespace kshim::shim

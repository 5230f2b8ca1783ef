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
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <thread>

#include "guest/reentry_guard.h"
#include "guest/safe_memory.h"
#include "guest/timed_lock.h"
#include "process/python/layout.h"
#include "process/stack/native.h"
#include "process/stack/walk.h"

// walk.cpp's stand-ins for libc's.
extern "C" [[noreturn]] void __wrap_abort();
extern "C" int __wrap_pthread_rwlock_wrlock(void*);
extern "C" int __wrap_pthread_rwlock_unlock(void*);

namespace kshim::shim {
namespace {

TEST(Walk, WhatTheUnwinderAbortsIsGivenUp) {
  int steps = 0;
  const auto fails = [](void* count) {
    ++*static_cast<int*>(count);
    __wrap_pthread_rwlock_wrlock(nullptr);
    __wrap_abort();
  };
  const auto works = [](void* count) {
    __wrap_pthread_rwlock_wrlock(nullptr);  // the lock was given back
    ++*static_cast<int*>(count);
    __wrap_pthread_rwlock_unlock(nullptr);
  };
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

TEST(Walk, ALockThatIsNotHadEndsIt) {
  std::atomic<int> stage{0};
  std::thread holder([&stage] {
    __wrap_pthread_rwlock_wrlock(nullptr);
    stage.store(1);
    while (stage.load() != 2) std::this_thread::yield();
    __wrap_pthread_rwlock_unlock(nullptr);
  });
  while (stage.load() != 1) std::this_thread::yield();
  EXPECT_FALSE(guarded_walk([](void*) { __wrap_pthread_rwlock_wrlock(nullptr); }, nullptr));
  stage.store(2);
  holder.join();
}

const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

/// Two pages, of which only the first is there.
class HalfMapped {
 public:
  HalfMapped()
      : start_(static_cast<char*>(
            mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(start_ + kPage, kPage, PROT_NONE);  // a hole would be filled by whoever maps next
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

/// Answers process_vm_readv with EPERM, as container run times do; false where this machine does not allow
/// that.
bool enter_sandbox() {
  std::array<sock_filter, 4> program{{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_process_vm_readv},
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

TEST(ReadMemory, AlsoWhereTheSandboxForbidsTheSystemCall) {
  constexpr int kNoSandbox = 77;
  const int outcome = in_child([] { return !enter_sandbox() ? kNoSandbox : reads_carefully() ? 0 : 1; });
  if (outcome == kNoSandbox) GTEST_SKIP() << "this machine does not let a process give up system calls";
  EXPECT_EQ(outcome, 0);
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

[[gnu::noinline]] bool is_free() {
  const Busy busy;
  return static_cast<bool>(busy);
}
[[gnu::noinline]] bool is_free_inside() {
  const Busy busy;
  return is_free();
}
sigjmp_buf g_outside;
/// One function, as its frame is to be as high each time: on aarch64 a frame's address depends on its size.
[[gnu::noinline]] bool jump_or_ask(bool jump) {
  const Busy busy;
  if (jump) siglongjmp(g_outside, 1);
  return static_cast<bool>(busy);
}
bool g_free_in_handler = true;
void ask(int) { g_free_in_handler = is_free(); }

TEST(Busy, IsWhoeverIsCalledFromInside) {
  EXPECT_TRUE(is_free());
  EXPECT_FALSE(is_free_inside());
  EXPECT_TRUE(is_free());
}

TEST(Busy, EndsWhenTheHostJumpsOut) {
  if (sigsetjmp(g_outside, 1) == 0) jump_or_ask(true);
  EXPECT_TRUE(jump_or_ask(false));
  EXPECT_TRUE(is_free());
  EXPECT_FALSE(is_free_inside());
}

/// One piece of memory: a thread's stack below, its handlers' stack above.
alignas(4096) char g_stacks[2 * 262144];

void* raise_inside(void*) {
  stack_t above{};
  above.ss_sp = g_stacks + sizeof g_stacks / 2;
  above.ss_size = sizeof g_stacks / 2;
  stack_t before{};  // a sanitizer's, which it wants back
  sigaltstack(&above, &before);
  {
    const Busy busy;
    raise(SIGUSR1);
  }
  sigaltstack(&before, nullptr);
  return nullptr;
}

TEST(Busy, LastsInAHandlerOnAStackOfItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer calls handlers later, and not on their stack";
#endif
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstack(&attributes, g_stacks, sizeof g_stacks / 2), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, raise_inside, nullptr), 0);
  pthread_join(thread, nullptr);
  EXPECT_FALSE(g_free_in_handler);
}

/// QEMU's user mode (7.2) takes the advice and does not follow it.
bool pages_are_wiped_on_fork() {
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* value = static_cast<volatile char*>(page);
  *value = 1;
  const bool wiped = madvise(page, kPage, MADV_WIPEONFORK) != 0 || in_child([value] { return *value; }) == 0;
  munmap(page, kPage);
  return wiped;
}

TEST(PatientLock, IsTakenOverInTheChildOfFork) {
  if (!pages_are_wiped_on_fork()) GTEST_SKIP() << "MADV_WIPEONFORK is accepted and not done";
  static PatientLock g_lock;
  ASSERT_TRUE(g_lock.acquire());
  EXPECT_EQ(in_child([] { return g_lock.acquire() ? 0 : 1; }), 0);
  g_lock.release();
}

}  // namespace
}  // namespace kshim::shim

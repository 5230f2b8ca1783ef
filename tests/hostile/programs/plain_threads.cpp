// SPDX-License-Identifier: Apache-2.0
// Threads, fibers and signal handlers that leave the shim by other ways than they came in.
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <thread>

#include "plain.h"

extern "C" void kshim_test_repeat(long (*call)(const char*), volatile unsigned* count);

namespace hostile {
namespace {

void often(long microseconds, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval times{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &times, nullptr);
}

/// Without stdio: a fiber may be left anywhere.
struct Name {
  char text[24] = "k000000";
  explicit Name(unsigned number) {
    for (char* digit = text + 6; digit > text; --digit, number /= 10)
      *digit = static_cast<char>('0' + number % 10);
  }
};

constexpr std::size_t kStack = 262144;
ucontext_t g_contexts[3];  // the program's, and two fibers
alignas(4096) char g_fiber_stacks[2][kStack];
volatile sig_atomic_t g_now = 0;
volatile unsigned g_switches = 0;
volatile unsigned g_calls[2] = {};
constexpr unsigned kSwitches = 3000;
constexpr unsigned kMaxSwitches = 300'000;  // on a machine with much else to do

bool is_enough() {
  return g_switches >= kMaxSwitches || (g_switches >= kSwitches && g_calls[0] >= 50 && g_calls[1] >= 50);
}

/// A scheduler of green threads that preempts.
void preempt(int) {
  if (g_now == 0) return;
  const int from = g_now;
  g_now = 3 - from;
  g_switches = g_switches + 1;
  swapcontext(&g_contexts[from], &g_contexts[3 - from]);
}

// swapcontext() restores the mask before the registers: a signal in between would save the wrong fiber. So a
// fiber begins as a handler ends, with the signal blocked.
void block_timer(int how) {
  sigset_t timer;
  sigemptyset(&timer);
  sigaddset(&timer, SIGALRM);
  sigprocmask(how, &timer, nullptr);
}

void run_fiber(int which) {
  block_timer(SIG_UNBLOCK);
  while (!is_enough()) {
    fail_as(Name(static_cast<unsigned>(which) * 400 + g_calls[which] % 400).text);
    g_calls[which] = g_calls[which] + 1;
  }
  g_now = 0;
  setcontext(&g_contexts[0]);
}

}  // namespace

int switches() {
  start();
  fail_as("before");  // dlsym() must not be left in the middle
  volatile bool back = false;
  block_timer(SIG_BLOCK);
  getcontext(&g_contexts[0]);
  if (!back) {
    back = true;
    for (int i = 0; i < 2; ++i) {
      getcontext(&g_contexts[i + 1]);
      g_contexts[i + 1].uc_stack.ss_sp = g_fiber_stacks[i];
      g_contexts[i + 1].uc_stack.ss_size = kStack;
      makecontext(&g_contexts[i + 1], reinterpret_cast<void (*)()>(run_fiber), 1, i);
    }
    g_now = 1;
    often(100, preempt);
    setcontext(&g_contexts[1]);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("both ran: %d\n", g_calls[0] >= 50 && g_calls[1] >= 50);
  std::printf("after: %d\n", fail_as("after"));
  return 0;
}

namespace {
int g_in_coroutine = 0;
void fail_in_coroutine() { g_in_coroutine = fail_as("coroutine"); }
}  // namespace

/// A coroutine whose stack is a part of the main thread's, with the program's data right below.
int coroutine() {
  struct {
    char data[262144];
    alignas(16) char memory[8192];
  } place;
  start();
  fail_as("before");
  std::memset(&place, 'd', sizeof place);
  static ucontext_t thread;
  static ucontext_t fiber;
  getcontext(&fiber);
  fiber.uc_stack.ss_sp = place.memory;
  fiber.uc_stack.ss_size = sizeof place.memory;
  fiber.uc_link = &thread;
  makecontext(&fiber, fail_in_coroutine, 0);
  swapcontext(&thread, &fiber);
  std::printf("coroutine: %d\n", g_in_coroutine);
  std::printf("below: %s\n", std::count(place.data, std::end(place.data), 'd') == sizeof place.data
                                 ? "whole"
                                 : "overwritten");
  return 0;
}

namespace {
volatile unsigned g_done = 0;
Call g_look_up = nullptr;
long g_function = 0;

// In C all the way, for a cancellation does not get past a function that throws nothing.
long look_up_plainly(const char* name) {
  return g_look_up(word(&g_function), 0x70000000, word(name), 0, 0, 0, 0, 0, 0, 0, 0, 0);
}
void* fail_for_ever(void*) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  kshim_test_repeat(look_up_plainly, &g_done);
  return nullptr;
}
}  // namespace

/// Threads that are canceled wherever they are.
int cancel() {
  start();
  g_look_up = driver().function("cuModuleGetFunction");
  for (int round = 0; round < 60; ++round) {
    pthread_t thread{};
    const unsigned before = g_done;
    pthread_create(&thread, nullptr, fail_for_ever, nullptr);
    while (g_done < before + 3) usleep(50);
    usleep(static_cast<useconds_t>(round * 7 % 100));
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
  }
  int other = 0;
  std::thread([&other] { other = fail_as("other"); }).join();
  std::printf("after: %d %d\n", fail_as("after"), other);
  return 0;
}

/// Many threads in the shim at a time; then one more.
int crowd() {
  start();
  std::vector<std::thread> threads;
  std::atomic<unsigned> number{0};
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&number] {
      for (int round = 0; round < 30; ++round) fail_as(Name(number++).text);
    });
  for (std::thread& thread : threads) thread.join();
  int last = 0;
  std::thread([&last] { last = fail_as("last"); }).join();
  std::printf("last: %d\n", last);
  return 0;
}

/// Says when it has begun; the test stops and continues it meanwhile.
int stopped() {
  start();
  runtime_asks_driver("cuLaunchKernel");
  std::printf("begun\n");
  std::fflush(stdout);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 20000; ++round) wrong += fail_in_runtime() == kRefused ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("wrong: %d\n", wrong.load());
  return 0;
}

namespace {
sigjmp_buf g_back;
volatile sig_atomic_t g_may_jump = 0;
void jump_back(int) {
  if (g_may_jump != 0) siglongjmp(g_back, 1);
}
}  // namespace

/// Jumps out of a failing launch of the runtime's; then another thread opens a library (WORD 0).
int jumps_out_of_runtime() {
  start();
  runtime_asks_driver("cuLaunchKernel");
  fail_in_runtime();
  static volatile int jumps = 0;
  often(170, jump_back);
  while (jumps < 500) {
    if (sigsetjmp(g_back, 1) != 0) jumps = jumps + 1;
    g_may_jump = 1;
    while (jumps < 500) fail_in_runtime();
  }
  g_may_jump = 0;
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::thread([] {
    void* library = dlopen(g_words[0].c_str(), RTLD_NOW);
    std::printf("opened: %d\n", library != nullptr);
    std::printf("%d\n", fail_as("after"));
  }).join();
  return 0;
}

namespace {
constexpr int kFatbin = 0x5000;  // what the runtime answers: the handle
char g_stubs[2];
alignas(16) char g_wrapper[64];

/// As a program that is linked to the runtime is bound: the names do not begin with "cu".
Call linked(const char* name) {
  dlopen("libcudart.so.12", RTLD_NOW | RTLD_GLOBAL);
  return reinterpret_cast<Call>(dlvsym(RTLD_DEFAULT, name, "libcudart.so.12"));
}

void register_kernel(const char* stub, const char* name) {
  static const Call call = linked("__cudaRegisterFunction");
  call(kFatbin, word(stub), word(name), word(name), 0, 0, 0, 0, 0, 0, 0, 0);
}

int launch(const char* stub) {
  runtime().answers(kRefused);
  return runtime().call("cudaLaunchKernel", word(stub));
}

/// In a signal handler, whatever this thread was doing.
void fork_and_launch(int) {
  static volatile int left = 40;
  if (g_may_jump == 0 || left == 0) return;
  left = left - 1;
  const pid_t child = fork();
  if (child == 0) {
    register_kernel(&g_stubs[1], "in_the_child");
    _exit(launch(&g_stubs[1]) == kRefused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) _exit(90);
  if (left == 0) g_may_jump = 0;
}
}  // namespace

/// Registers kernels while a timer's handler forks children that register and launch. Then another thread
/// does.
int registers() {
  start();
  runtime().answers(kFatbin);
  linked("__cudaRegisterFatBinary")(word(g_wrapper), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  register_kernel(&g_stubs[0], "before");
  g_may_jump = 1;
  often(2000, fork_and_launch);
  while (g_may_jump != 0) register_kernel(&g_stubs[0], "again");
  g_may_jump = 0;
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::thread([] {
    register_kernel(&g_stubs[1], "after");
    std::printf("%d\n", launch(&g_stubs[1]));
  }).join();
  return 0;
}

/// Registers what PyTorch does: 1,500 fatbins of 67 kernels each, loads 300 images and fails. The process's
/// own account of its memory is in the file WORD 0.
int registers_many() {
  constexpr int kFatbins = 1500;
  constexpr int kKernels = 67;
  static char stubs[kFatbins * kKernels];
  static char names[kFatbins * kKernels][16];
  static char wrappers[kFatbins][64];
  driver().call("cuInit", 0);
  const Call add_fatbin = linked("__cudaRegisterFatBinary");
  const Call add_kernel = linked("__cudaRegisterFunction");
  for (int i = 0; i < kFatbins; ++i) {
    runtime().answers(kFatbin + i);
    add_fatbin(word(wrappers[i]), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (int k = i * kKernels; k < (i + 1) * kKernels; ++k) {
      std::snprintf(names[k], sizeof names[k], "kernel%d", k);
      add_kernel(kFatbin + i, word(stubs + k), word(names[k]), word(names[k]), 0, 0, 0, 0, 0, 0, 0, 0);
    }
  }
  static char images[300][64];
  for (auto& image : images) {
    long module = 0;
    driver().call("cuModuleLoadData", word(&module), word(image));
  }
  driver().answers(kRefused);
  std::printf("%d %d\n", launch(stubs + sizeof stubs - 1), fail_as("last"));
  std::ifstream in("/proc/self/status");
  std::ofstream(g_words[0]) << in.rdbuf();
  return 0;
}

/// Handlers of pthread_atfork that call the driver, while two threads keep the shim busy.
int at_fork() {
  start();
  pthread_atfork([] { fail_as("prepare"); }, [] { fail_as("parent"); }, [] { fail_as("child"); });
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 2; ++i)
    threads.emplace_back([&stop, i] {
      for (unsigned number = i; !stop.load(); number += 2) fail_as(Name(number % 500).text);
    });
  int good = 0;
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(fail_as("after") == kRefused ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    good += status == 0 ? 1 : 0;
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::printf("%d\n", good);
  return 0;
}

namespace {
std::atomic<int> g_refused{0};
struct Leaves {
  bool used = false;
  ~Leaves() { g_refused += used && fail_as("leaves") == kRefused ? 1 : 0; }
};
}  // namespace

/// 3,000 threads, 60 at a time; each fails, and once more in a destructor of its own variable while it ends.
int many_threads() {
  start();
  for (int round = 0; round < 50; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 60; ++i)
      threads.emplace_back([] {
        static thread_local Leaves leaves;
        g_refused += fail_as("lives") == kRefused ? 1 : 0;
        leaves.used = true;
      });
    for (std::thread& thread : threads) thread.join();
  }
  std::printf("%d\n", g_refused.load());
  return 0;
}

/// Threads with regions of 256 GiB of their own, in which their stacks are, as isolates have them.
int far_apart() {
  start();
  constexpr std::size_t kSize = std::size_t{1} << 20;
  std::vector<pthread_t> threads(4);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    void* const place = reinterpret_cast<void*>(0x100000000000 + (i << 38));
    void* const stack = mmap(place, kSize, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (stack != place) return 77;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, kSize);
    const auto fail = [](void*) -> void* {
      for (int round = 0; round < 1000; ++round) g_refused += fail_as("far") == kRefused ? 1 : 0;
      return nullptr;
    };
    pthread_create(&threads[i], &attributes, fail, nullptr);
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  std::printf("%d\n", g_refused.load());
  return 0;
}

/// What registers device code, and what reads an error, asks the driver, is refused, and says nothing of it;
/// the thread ends.
int pending() {
  start();
  const char* const kAsked[][2] = {{"__cudaRegisterFatBinaryEnd", "cuModuleLoadData"},
                                   {"__cudaUnregisterFatBinary", "cuModuleUnload"},
                                   {"__cudaRegisterVar", "cuModuleGetGlobal_v2"},
                                   {"cudaGetLastError", "cuCtxSynchronize"},
                                   {"cudaPeekAtLastError", "cuStreamSynchronize"}};
  for (const auto& row : kAsked) {
    runtime_asks_driver(row[1]);
    std::thread([&row] { runtime().call(row[0], 0); }).join();
  }
  std::printf("done\n");
  return 0;
}

namespace {
volatile int g_in_handler = 0;
}

/// A signal arrives while the driver is at work on a call that fails; another call fails in its handler.
int interrupted() {
  start();
  fail_as("before");
  struct sigaction action {};
  action.sa_handler = [](int) { g_in_handler = fail_as("handler"); };
  sigaction(SIGUSR1, &action, nullptr);
  driver().settings->calls = [](long, long, long, long, long, long, long, long, long, long, long,
                                long) -> long {
    driver().settings->calls = nullptr;
    return raise(SIGUSR1);
  };
  const int outside = fail_as("interrupted");
  std::printf("%d %d\n", outside, g_in_handler);
  return 0;
}

/// A process forks in a call that is going to fail, and another call fails in the child.
int forked_in_log() {
  start();
  fail_as("before");
  driver().settings->calls = [](long, long, long, long, long, long, long, long, long, long, long,
                                long) -> long {
    driver().settings->calls = nullptr;
    const pid_t child = fork();
    if (child == 0) std::exit(fail_as("child") == kRefused ? 5 : 6);
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("%d\n", WEXITSTATUS(status));
    return 0;
  };
  fail_as("parent");
  return 0;
}

namespace {

constexpr unsigned kStopped = 4;
std::atomic<unsigned> g_answers{0};
std::atomic<unsigned> g_pause{0};
pthread_mutex_t g_of_driver = PTHREAD_MUTEX_INITIALIZER;

/// What each of the driver's functions does first: it works for some time under a lock.
long work_under_lock(long, long, long, long, long, long, long, long, long, long, long, long) {
  pthread_mutex_lock(&g_of_driver);
  for (int i = 0; i < 200'000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
  return pthread_mutex_unlock(&g_of_driver);
}

void wait_in_handler(int) {
  const unsigned pause = g_pause.load();
  g_answers.fetch_add(1);
  while (g_pause.load() == pause) usleep(100);
}

}  // namespace

/// A collector: stops threads by a signal and waits for an answer from each. A thread that is stopped may own
/// the driver's lock, which another one waits for.
int stops_threads() {
  constexpr unsigned kPauses = 100;
  constexpr int kPatience = 100'000;  // of 100 microseconds
  start();
  fail_as("before");
  driver().settings->calls = work_under_lock;
  struct sigaction action {};
  action.sa_handler = wait_in_handler;
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (unsigned which = 0; which < kStopped; ++which)
    threads.emplace_back([&end, which] {
      for (unsigned i = 0; !end; i = (i + 1) % 100) fail_as(Name(which * 100 + i).text);
    });
  for (unsigned pause = 0; pause < kPauses; ++pause) {
    g_answers = 0;
    for (std::thread& thread : threads) pthread_kill(thread.native_handle(), SIGUSR1);
    for (int waited = 0; g_answers < kStopped; ++waited) {
      if (waited == kPatience) {
        std::printf("pause %u: %u threads of %u answer\n", pause, g_answers.load(), kStopped);
        std::fflush(stdout);
        _exit(1);
      }
      usleep(100);
    }
    g_pause.fetch_add(1);
    usleep(500);
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("all answered\n");
  return 0;
}

namespace {

sigjmp_buf g_time_is_up;
int g_driver_calls = 0;

/// Raises a signal in the second call of the driver: with the shim, that is its question after the first one
/// has failed.
long raise_in_second(long, long, long, long, long, long, long, long, long, long, long, long) {
  if (++g_driver_calls == 2) raise(SIGUSR1);
  return 0;
}

/// The same from deeper in the stack.
[[gnu::noinline]] int fail_deeper(const char* name, int depth) {
  volatile char room[256] = {};
  const int answer = depth == 0 ? fail_as(name) : fail_deeper(name, depth - 1);
  return answer + room[0];
}

}  // namespace

/// WORD 0: "jumps": the handler gives the work up (siglongjmp), then others fail, from deeper in the stack.
/// "calls": a call fails in the handler; "stack": the handler has a stack of its own.
int while_asking() {
  constexpr int kLater = 20;
  static char stack[1 << 16];
  const stack_t signals{stack, 0, sizeof stack};
  static const bool jumps = g_words[0] == "jumps";  // what siglongjmp leaves alone
  start();
  fail_as("before");
  if (g_words[0] == "stack") sigaltstack(&signals, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  if (jumps)
    action.sa_handler = [](int) { siglongjmp(g_time_is_up, 1); };
  else
    action.sa_handler = [](int) { fail_as("handler"); };
  sigaction(SIGUSR1, &action, nullptr);
  driver().settings->calls = raise_in_second;
  if (sigsetjmp(g_time_is_up, 1) == 0) {
    fail_as("work");
    fail_as("more work");
  }
  driver().settings->calls = nullptr;
  int refused = 0;
  for (unsigned i = 0; i < kLater; ++i)
    refused += fail_deeper(Name(i).text, jumps ? 64 : 0) == kRefused ? 1 : 0;
  std::printf("%d\n", refused);
  return 0;
}

namespace {
std::atomic<bool> g_inside{false};
int stay(dl_phdr_info*, std::size_t, void*) {
  g_inside.store(true);
  for (;;) pause();
}

}  // namespace

/// Fails, and ends as WORD 0 says; with WORD 1 while another thread is in a callback of dl_iterate_phdr.
int ends() {
  const std::string how = g_words[0];
  start();
  std::printf("%d\n", fail_as("ends"));
  std::fflush(stdout);
  if (g_words.size() > 1 && g_words[1] == "callback") {
    std::thread([] { dl_iterate_phdr(stay, nullptr); }).detach();
    while (!g_inside.load()) usleep(100);
  }
  if (how == "exit") std::exit(5);
  if (how == "_exit") _exit(5);
  if (how == "quick_exit") std::quick_exit(5);
  if (how == "abort") std::abort();
  if (how == "kill") raise(SIGKILL);
  if (how == "exec") execlp("true", "true", nullptr);
  if (how == "thread") {
    std::thread([] {
      usleep(1000);
      fail_as("later");
    }).detach();
    pthread_exit(nullptr);
  }
  if (how == "handler") {
    struct sigaction action {};
    action.sa_handler = [](int) { _exit(5); };
    sigaction(SIGSEGV, &action, nullptr);
    raise(SIGSEGV);
  }
  if (how == "child") {
    const pid_t child = fork();
    if (child == 0) std::exit(6);
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("%x\n", static_cast<unsigned>(status));
    std::fflush(stdout);
    _exit(5);
  }
  return 5;
}

/// The main thread ends; what comes after is another thread's first use of anything. WORD 0: a library.
int main_ends() {
  std::thread([] {
    usleep(100'000);
    void* const library = dlopen(g_words[0].c_str(), RTLD_NOW);
    std::printf("%d %d\n", dlsym(RTLD_DEFAULT, "printf") != nullptr, dlsym(library, "calls_back") != nullptr);
    const int init = driver().call("cuInit", 0);
    driver().answers(kRefused);
    std::printf("%d %d\n", init, fail_as("main_ends"));
    std::exit(5);
  }).detach();
  pthread_exit(nullptr);
}

/// A server that has met an error forks a worker, which looks for a program that is not there (vfork, as
/// Python's subprocess has it) and then uses the driver.
int worker() {
  start();
  std::printf("%d\n", fail_as("server"));
  driver().answers(0);
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const pid_t helper = vfork();
    if (helper == 0) {
      execl("/no/such/program", "program", nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(helper, &status, 0);
    std::printf("%x", static_cast<unsigned>(status));
    long module = 0;
    for (const char* name : {"cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuMemAlloc_v2"})
      std::printf(" %d", driver().call(name, 0));
    std::printf(" %d\n", driver().call("cuModuleLoadData", word(&module), word("")));
    driver().answers(kRefused);
    std::printf("%d\n", fail_as("worker"));
    std::fflush(stdout);
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("%x\n", static_cast<unsigned>(status));
  return 0;
}

}  // namespace hostile

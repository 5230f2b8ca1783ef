// SPDX-License-Identifier: Apache-2.0
// What a call may find around it: arguments that lead nowhere, signals that are blocked, files that have
// shrunk, very many mappings, no memory left.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>

#include "plain.h"

namespace hostile {
namespace {

#define KSHIM_HOOK(layer, name, ...) {#name, #layer[0] == 'd'},
constexpr struct {
  const char* name;
  bool of_driver;
} kFunctions[] = {
#include "hooks.def"
};

std::uint64_t signal_mask() {
  std::uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return mask;
}

}  // namespace

/// Each function, refused by the driver or the runtime, with words that are no pointers to anything; errno,
/// the mask of signals (those that libc keeps to itself, too) and the alternate stack are the caller's.
int garbage() {
  auto* const pages =
      static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::memset(pages, 'n', 4096);
  mprotect(pages + 4096, 4096, PROT_NONE);
  const long words[] = {0,
                        1,
                        -1,
                        0x1000,
                        0x7fff'ffff'f000,
                        std::numeric_limits<long>::min(),
                        word(pages + 4096),
                        word(pages + 4095),
                        word(pages + 4000),
                        word(pages + 1)};
  start();
  runtime().answers(kRefused);
  std::uint64_t blocked = std::uint64_t{1} << (SIGUSR2 - 1) | std::uint64_t{1} << 40U;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, &blocked, nullptr, sizeof blocked);
  const std::uint64_t before = signal_mask();
  int wrong = 0;
  for (const auto& row : kFunctions) {
    const Call call = (row.of_driver ? driver() : runtime()).function(row.name);
    for (const long word : words) {
      errno = 77;
      const long answer = call(word, word, word, word, word, word, word, word, word, word, word, word);
      const bool same = static_cast<int>(answer) == kRefused && errno == 77 && signal_mask() == before;
      if (!same)
        std::printf("%s(%lx): %d, errno %d, mask %d\n", row.name, static_cast<unsigned long>(word),
                    static_cast<int>(answer), errno, signal_mask() == before);
      wrong += same ? 0 : 1;
    }
  }
  std::printf("wrong: %d\n", wrong);
  return 0;
}

/// The file of a library, and one of device code that is mapped, are cut off while they are in use (WORDS 0,
/// 1).
int truncated() {
  start();
  dlopen(g_words[0].c_str(), RTLD_NOW);
  const int file = open(g_words[1].c_str(), O_RDWR);
  void* image = mmap(nullptr, 65536, PROT_READ, MAP_SHARED, file, 0);
  const int cut = truncate(g_words[0].c_str(), 0) + ftruncate(file, 0);
  long module = 0;
  const int refused = driver().call("cuModuleLoadData", word(&module), word(image));
  driver().answers(0);
  const int loaded = driver().call("cuModuleLoadData", word(&module), word(image));
  driver().answers(kRefused);
  std::printf("%d %d %d %d\n", cut, refused, loaded, fail_as("truncated"));
  return 0;
}

/// WORD 0 mappings; then failures of 200 kinds. The processor's time that these took is in the file WORD 1.
int mappings() {
  start();
  const long count = std::stol(g_words[0]);
  int made = 0;
  for (long i = 0; i < count; ++i)  // protections that alternate, or the kernel makes one of them
    made += mmap(nullptr, 4096, i % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                    MAP_FAILED
                ? 1
                : 0;
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_SELF, &before);
  int refused = 0;
  for (int i = 0; i < 200; ++i)
    refused += fail_as(("mapped_" + std::to_string(i)).c_str()) == kRefused ? 1 : 0;
  getrusage(RUSAGE_SELF, &after);
  const auto seconds = [](const rusage& usage) {
    const auto of = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return of(usage.ru_utime) + of(usage.ru_stime);
  };
  std::ofstream(g_words[1]) << seconds(after) - seconds(before) << "\n";
  std::printf("%d %d\n", made, refused);
  return 0;
}

/// WORD 0 mappings are left when the driver is first used; WORD 1: a file that says how many are left later.
int few_mappings() {
  driver();
  static void* made[1 << 20];
  std::size_t count = 0;
  const auto map_until_refused = [&count] {
    const std::size_t before = count;
    for (; count < std::size(made); ++count) {
      made[count] =
          mmap(nullptr, 4096, count % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (made[count] == MAP_FAILED) break;
    }
    return count - before;
  };
  map_until_refused();
  for (long spare = std::stol(g_words[0]); spare > 0 && count > 0; --spare) munmap(made[--count], 4096);
  start();
  const int first = fail_as("first");
  const int second = fail_as("second");
  const std::size_t left = map_until_refused();
  while (count > 0) munmap(made[--count], 4096);
  std::ofstream(g_words[1]) << left << "\n";
  std::printf("%d %d %d\n", first, second, fail_as("third"));
  return 0;
}

/// Of memory, of the kind that WORD 0 says, WORD 1 bytes are left when the driver is first used.
int tight() {
  driver();
  const auto status = [](const char* name) {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
      if (line.rfind(name, 0) == 0) return std::stoul(line.substr(std::strlen(name))) * 1024;
    return 0UL;
  };
  const auto limit = [](int what, unsigned long bytes) {
    const rlimit both{bytes, bytes};
    return setrlimit(static_cast<__rlimit_resource>(what), &both);
  };
  const std::size_t spare = std::stoul(g_words[1]);
  int set = 0;
  if (g_words[0] == "addresses") set = limit(RLIMIT_AS, status("VmSize:") + spare);
  if (g_words[0] == "data") set = limit(RLIMIT_DATA, status("VmData:") + spare);
  if (g_words[0] == "locked") {
    set = mlockall(MCL_FUTURE);
    set += limit(RLIMIT_MEMLOCK, status("VmLck:") + spare) + setuid(65534);
  }
  if (g_words[0] == "not-dumpable") set = setuid(65534) + prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  start();
  std::printf("%d %d %d\n", set, fail_as("tight"), fail_as("tighter"));
  return 0;
}

/// Names as compilers of templates make them, and worse.
int names() {
  start();
  int refused = 0;
  for (const std::size_t size :
       {std::size_t{1000}, std::size_t{30'000}, std::size_t{300'000}, std::size_t{3'000'000}})
    refused += fail_as(std::string(size, 'n').c_str()) == kRefused ? 1 : 0;
  for (const char* name : {"", "\"\\\n\r\t\x01\x7f", "\xff\xfe\xc3(", "%s%n%s%n", "\xe2\x80\xa8 </script>"})
    refused += fail_as(name) == kRefused ? 1 : 0;
  std::printf("%d %d\n", refused, fail_as("last"));
  return 0;
}

namespace {
void fail_below() { fail_as("below"); }
}  // namespace

/// Code that was made at run time and that no table describes calls the driver, as that of a compiler does
/// that works while the program runs.
int generated() {
#if defined(__x86_64__)
  start();
  const unsigned char code[] = {0x48, 0x83, 0xec, 0x08, 0xff, 0xd7,
                                0x48, 0x83, 0xc4, 0x08, 0xc3};  // sub; call *rdi; add; ret
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  std::memcpy(memory, code, sizeof code);
  reinterpret_cast<void (*)(void (*)())>(memory)(fail_below);
  munmap(memory, 4096);
  std::printf("%d\n", fail_as("after"));
#endif
  return 0;
}

/// A coroutine of the program's own making: its first frame lies at the very end of what is mapped, and the
/// tables that describe it lead further up.
int edge() {
#if defined(__x86_64__)
  start();
  constexpr std::size_t kSize = 65536;
  auto* const stack =
      static_cast<char*>(mmap(nullptr, kSize + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(stack, kSize, PROT_READ | PROT_WRITE);
  for (const std::size_t below : {std::size_t{0}, std::size_t{16}, std::size_t{64}}) {
    char* const top = stack + kSize - below;
    asm volatile(
        "mov %%rsp, %%rbx\n\t"
        "mov %0, %%rsp\n\t"
        "call *%1\n\t"
        "mov %%rbx, %%rsp\n\t"
        :
        : "r"(top), "r"(&fail_below)
        : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
  }
  std::printf("%d\n", fail_as("after"));
#endif
  return 0;
}

}  // namespace hostile

// SPDX-License-Identifier: Apache-2.0
// What a question to libkshim-query.so costs: the first one about a file, in a process of its own, and the
// same again; beside one look at every byte of the file (pread and memchr). Processor time: what else the
// machine does counts less. The file is in the page cache. Rows of docs/query.md.
//   query_bench FILE [KERNEL [CAPABILITY]]      CAPABILITY as 80; of five rounds, the smallest
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kshim/query.h"

namespace {

constexpr int kRounds = 5;
constexpr int kRepeats = 10'000;

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Reads the file window by window, and calls look(data, size) for each.
template <class Look>
void each_window(const char* path, const Look& look) {
  static std::array<char, std::size_t{256} << 10U> window;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::exit(1);
  off_t at = 0;
  for (ssize_t got = 0; (got = ::pread(file, window.data(), window.size(), at)) > 0; at += got)
    look(window.data(), static_cast<std::size_t>(got));
  ::close(file);
}

/// The byte that memchr stops at least often.
int rarest_byte(const char* path) {
  std::array<std::uint64_t, 256> counts{};
  each_window(path, [&](const char* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) ++counts[static_cast<unsigned char>(data[i])];
  });
  return static_cast<int>(std::min_element(counts.begin(), counts.end()) - counts.begin());
}

double memchr_seconds(const char* path, int byte) {
  const double start = now();
  std::uint64_t hits = 0;
  each_window(path, [&](const char* data, std::size_t size) {
    const char* const end = data + size;
    for (const void* at = data;
         (at = std::memchr(at, byte, static_cast<std::size_t>(end - static_cast<const char*>(at)))) !=
         nullptr;
         ++hits)
      at = static_cast<const char*>(at) + 1;
  });
  const double seconds = now() - start;
  return hits == UINT64_MAX ? 0 : seconds;
}

struct Cost {
  double first = 1e9;
  double again = 1e9;
  long memory = 0;  ///< KiB more than before
  int code = 0;
};

/// In a process of its own, so that nothing is known of the file.
Cost measure(const kshim_question& question) {
  void* const shared =
      ::mmap(nullptr, sizeof(Cost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) std::exit(1);
  auto* const cost = new (shared) Cost;
  const pid_t child = ::fork();
  if (child == 0) {
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    double start = now();
    cost->code = kshim_query(&question, nullptr);
    cost->first = now() - start;
    ::getrusage(RUSAGE_SELF, &after);
    cost->memory = after.ru_maxrss - before.ru_maxrss;
    start = now();
    for (int i = 0; i < kRepeats; ++i) kshim_query(&question, nullptr);
    cost->again = (now() - start) / kRepeats;
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const Cost out = *cost;
  ::munmap(shared, sizeof(Cost));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const char* const path = argv[1];
  const int number = argc > 3 ? std::atoi(argv[3]) : 80;
  const char* const kernel = argc > 2 && argv[2][0] != '\0' ? argv[2] : nullptr;
  const kshim_question question{sizeof question, path, kernel, number / 10, number % 10, 0, 0};
  const int byte = rarest_byte(path);
  double bare = 1e9;
  Cost best;
  for (int round = 0; round < kRounds; ++round) {
    bare = std::min(bare, memchr_seconds(path, byte));
    const Cost cost = measure(question);
    best.first = std::min(best.first, cost.first);
    best.again = std::min(best.again, cost.again);
    best.memory = std::max(best.memory, cost.memory);
    best.code = cost.code;
  }
  struct stat facts {};
  ::stat(path, &facts);
  static const char* const kCodes[] = {"unknown", "sass", "jit", "none"};
  const char* const slash = std::strrchr(path, '/');
  std::printf("| %s | %.0f MB | %s | %s | %.1f ms | %.1f ms | %.2f | %.2f µs | %.0f MB |\n",
              slash != nullptr ? slash + 1 : path, static_cast<double>(facts.st_size) / 1e6,
              kernel != nullptr ? "one kernel" : "any kernel", kCodes[best.code], bare * 1e3,
              best.first * 1e3, best.first / bare, best.again * 1e6, static_cast<double>(best.memory) / 1024);
  return 0;
}

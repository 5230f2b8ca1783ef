// SPDX-License-Identifier: Apache-2.0
// scan_bench [--cuobjdump PROGRAM] [--repeat N] [FOLDER]: how fast find_device_code() reads the libraries of
// a CUDA toolkit, beside a bare walk over the same headers and beside cuobjdump. The variants take turns, so
// that a busy machine is unfair to none, and the best of each counts.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "bare_walk.h"

namespace {

using namespace kshim;
using namespace kshim::device_code;
namespace fs = std::filesystem;

// The toolkit's libraries that hold device code, and the two compilers among them that hold none but large
// tables.
constexpr const char* kLibraries[] = {"cublas",
                                      "cublasLt",
                                      "cudnn_ops",
                                      "cudnn_adv",
                                      "cudnn_cnn",
                                      "cudnn_engines_precompiled",
                                      "cudnn_heuristic",
                                      "cufft",
                                      "curand",
                                      "cusolver",
                                      "cusolverMg",
                                      "cusparse",
                                      "nccl",
                                      "nvJitLink",
                                      "nvrtc"};

class Mapping {
 public:
  explicit Mapping(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) return;
    void* data = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    ::close(fd);
    if (data == MAP_FAILED) return;
    bytes_ = Bytes(static_cast<const std::byte*>(data), static_cast<std::size_t>(status.st_size));
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
  Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

struct Count {
  std::uint64_t fatbins = 0;
  std::uint64_t images = 0;
  std::uint64_t searched = 0;
  std::uint64_t damage = 0;
};

Count walk_bare(const fs::path& path) {
  const Mapping file(path);
  const BareCount count = bare_walk(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  return {count.fatbins, count.images, count.searched, 0};
}

Count find(const fs::path& path) {
  const Mapping file(path);
  const auto code = find_device_code(file.bytes());
  return {code.fatbins, code.images.size(), code.searched, code.damage.size()};
}

/// All files, by one thread or several; the list has the largest first.
template <class Each>
Count over(const std::vector<fs::path>& files, unsigned threads, Each&& each) {
  std::vector<Count> counts(files.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < files.size(); at = next++) counts[at] = each(files[at]);
  };
  std::vector<std::thread> others;
  for (unsigned thread = 1; thread < threads; ++thread) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  Count sum;
  for (const Count& count : counts) {
    sum.fatbins += count.fatbins;
    sum.images += count.images;
    sum.searched += count.searched;
    sum.damage += count.damage;
  }
  return sum;
}

long minor_faults() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

struct Variant {
  const char* name;
  Count (*run)(const std::vector<fs::path>&);
  double best = 1e9;
  long faults = 0;
  Count count{};
};

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(Variant& variant, const std::vector<fs::path>& files) {
  const long before = minor_faults();
  const double seconds = seconds_of([&] { variant.count = variant.run(files); });
  variant.faults = minor_faults() - before;
  variant.best = std::min(variant.best, seconds);
}

/// Wall time of `cuobjdump --list-elf` over all files; negative where it cannot be run.
double run_cuobjdump(const std::string& program, const std::vector<fs::path>& files) {
  bool good = true;
  const double seconds = seconds_of([&] {
    for (const fs::path& file : files) {
      const std::string command = fmt::format("'{}' --list-elf '{}' >/dev/null 2>&1", program, file.string());
      const int status = std::system(command.c_str());  // 255 for a library without device code
      good = good && WIFEXITED(status) && WEXITSTATUS(status) != 127 && WEXITSTATUS(status) != 126;
    }
  });
  return good ? seconds : -1;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = KSHIM_CUDA_LIB;
  std::string cuobjdump;
  int repeat = 7;
  for (int at = 1; at < argc; ++at) {
    const std::string argument = argv[at];
    if (argument == "--cuobjdump" && at + 1 < argc) {
      cuobjdump = argv[++at];
    } else if (argument == "--repeat" && at + 1 < argc) {
      repeat = std::max(1, std::atoi(argv[++at]));
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "usage: scan_bench [--cuobjdump PROGRAM] [--repeat N] [FOLDER]\n");
      return 2;
    } else {
      folder = argument;
    }
  }
  std::vector<fs::path> files;
  std::uint64_t bytes = 0;
  for (const char* library : kLibraries) {
    std::error_code error;
    const fs::path file = fs::canonical(fs::path(folder) / fmt::format("lib{}.so", library), error);
    if (error) {
      fmt::print("lib{}.so: not in {}\n", library, folder);
      continue;
    }
    files.push_back(file);
    bytes += fs::file_size(file);
  }
  if (files.empty()) return 77;
  std::sort(files.begin(), files.end(),
            [](const fs::path& a, const fs::path& b) { return fs::file_size(a) > fs::file_size(b); });
  Variant variants[] = {
      {"bare walk, 1 thread", [](const auto& all) { return over(all, 1, walk_bare); }},
      {"find_device_code, 1 thread", [](const auto& all) { return over(all, 1, find); }},
      {"find_device_code, 2 threads", [](const auto& all) { return over(all, 2, find); }},
  };
  // One more than is counted: the first fills the page cache.
  for (int turn = 0; turn <= repeat; ++turn) {
    for (Variant& variant : variants) {
      if (turn == 1) variant.best = 1e9;
      measure(variant, files);
    }
  }
  fmt::print("{} files, {} MB, best of {}\n", files.size(), bytes >> 20, repeat);
  fmt::print("{:30} {:>9} {:>7} {:>8} {:>8} {:>12} {:>12} {:>7}\n", "", "ms", "ratio", "fatbins", "images",
             "MB searched", "minor faults", "damage");
  for (const Variant& each : variants) {
    fmt::print("{:30} {:9.1f} {:7.2f} {:8} {:8} {:12} {:12} {:7}\n", each.name, each.best * 1e3,
               each.best / variants[0].best, each.count.fatbins, each.count.images, each.count.searched >> 20,
               each.faults, each.count.damage);
  }
  if (cuobjdump.empty() || ::access(cuobjdump.c_str(), X_OK) != 0) {
    fmt::print("cuobjdump --list-elf: skipped, --cuobjdump names no program\n");
    return 0;
  }
  const double seconds = run_cuobjdump(cuobjdump, files);
  if (seconds < 0) {
    fmt::print("cuobjdump --list-elf: cannot be run\n");
    return 0;
  }
  const double ours = std::min(variants[1].best, variants[2].best);
  fmt::print("{:30} {:9.0f} {:7.2f}: {:.0f} times the best above\n", "cuobjdump --list-elf", seconds * 1e3,
             seconds / variants[0].best, seconds / ours);
  return 0;
}

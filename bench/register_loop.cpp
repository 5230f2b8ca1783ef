// SPDX-License-Identifier: Apache-2.0
// register_loop COUNT KERNELS ms|kb|gone: what it takes to register COUNT fatbins of KERNELS kernels each
// with the shared runtime, as the constructors of a large library do: milliseconds, kilobytes that became
// resident, or milliseconds to unregister them all again, the newest first.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int threads,
                            void* tid, void* bid, void* block, void* grid, int* warp);
}

namespace {

struct Wrapper {
  std::uint32_t magic = 0x466243b1, version = 1;
  const void* fatbin = nullptr;
  void* unused = nullptr;
};
struct alignas(8) Fatbin {
  std::uint32_t magic = 0xba55ed50;
  std::uint16_t version = 1, header = 16;
  std::uint64_t size = 0;
};
constexpr Fatbin kEmpty;

double resident_kb() {
  long pages = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &pages, &resident) != 2) std::exit(1);
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1024;
}

double now_ms() {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto count = static_cast<std::size_t>(std::atol(argv[1]));
  const auto kernels = static_cast<std::size_t>(std::atol(argv[2]));
  const std::string_view what = argv[3];
  std::vector<Wrapper> wrappers(count);
  std::vector<void**> handles(count);
  std::vector<char> stubs(count * kernels * 16, 1);  // only their addresses matter
  std::vector<std::string> names(kernels);
  for (std::size_t i = 0; i < kernels; ++i) names[i] = "_Z6kernel" + std::to_string(i);
  for (Wrapper& wrapper : wrappers) wrapper.fatbin = &kEmpty;
  const double memory = resident_kb();
  const double start = now_ms();
  for (std::size_t i = 0; i < count; ++i) {
    handles[i] = __cudaRegisterFatBinary(&wrappers[i]);
    for (std::size_t k = 0; k < kernels; ++k)
      __cudaRegisterFunction(handles[i], &stubs[(i * kernels + k) * 16], names[k].data(), names[k].c_str(),
                             -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(handles[i]);
  }
  const double took = now_ms() - start;
  const double grown = resident_kb() - memory;
  const double before = now_ms();
  for (std::size_t i = count; i-- > 0;) __cudaUnregisterFatBinary(handles[i]);
  const double gone = now_ms() - before;
  std::printf("%.3f\n", what == "kb" ? grown : what == "gone" ? gone : took);
}

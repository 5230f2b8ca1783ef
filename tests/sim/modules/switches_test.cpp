// SPDX-License-Identifier: Apache-2.0
// What the environment changes. The driver reads it once, so each case is a child process; the parent never
// calls it.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>
#include <utility>

#include "images.h"

namespace kshim::sim::test {
namespace {

using Environment = std::vector<std::pair<const char*, const char*>>;

/// What `body` returns in a process of its own with one current context on device 0; -1 where it did not get
/// that far.
int in_process(const Environment& environment, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("KSHIM_SIM_DEVICES", "9.0", 1);
    for (const auto& [name, value] : environment) ::setenv(name, value, 1);
    CUcontext context = nullptr;
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) ::_exit(255);
    cuCtxSetCurrent(context);
    // Exit statuses have eight bits; the codes looked for here fit.
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

int load(const Buffer& image) {
  CUmodule module = nullptr;
  return static_cast<int>(cuModuleLoadData(&module, image.data()));
}

Buffer fatbin(bool with_cubin, bool with_ptx, image::Version isa = {7, 8}) {
  FatbinBuilder made;
  if (with_cubin) add_cubin(made, 90);
  if (with_ptx) add_ptx(made, 75, isa);
  return made.build();
}

TEST(Switches, OfTheCompiler) {
  struct Row {
    Environment environment;
    int cubin, ptx, both;
  };
  const Row rows[] = {
      {{}, 0, 0, 0},
      {{{"CUDA_FORCE_PTX_JIT", "1"}}, 209, 0, 0},
      {{{"CUDA_DISABLE_PTX_JIT", "1"}}, 0, 223, 0},
      {{{"CUDA_FORCE_JIT", "1"}}, 209, 0, 0},
      {{{"CUDA_DISABLE_JIT", "1"}}, 0, 223, 0},
      {{{"KSHIM_SIM_JIT", "0"}}, 0, 221, 0},
      {{{"KSHIM_SIM_DRIVER", "11.7"}}, 200, 222, 200},  // cubins of ELF ABI 8 are CUDA 13's
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.environment.empty() ? "none" : row.environment[0].first);
    EXPECT_EQ(row.cubin, in_process(row.environment, [] { return load(fatbin(true, false)); }));
    EXPECT_EQ(row.ptx, in_process(row.environment, [] { return load(fatbin(false, true)); }));
    EXPECT_EQ(row.both, in_process(row.environment, [] { return load(fatbin(true, true)); }));
  }
}

// Device memory is the host's: what it has not is refused, and zeros take none.
TEST(Switches, MemoryIsBoundedByTheHosts) {
  constexpr std::size_t kPart = std::size_t{1} << 30;
  constexpr std::size_t kParts = 16384;  // 16 TiB, more than any host here
  const Environment large = {{"KSHIM_SIM_MEMORY", "32768G"}, {"KSHIM_LOG", "off"}};
  EXPECT_EQ(2, in_process(large, [] {
              CUdeviceptr memory = 0;
              if (cuMemAlloc(&memory, kPart * kParts) != CUDA_SUCCESS) return 100;
              return static_cast<int>(cuMemsetD8(memory, 1, kPart * kParts));
            }));
  EXPECT_EQ(2, in_process(large, [] {
              CUdeviceptr from = 0;
              CUdeviceptr to = 0;
              if (cuMemAlloc(&from, kPart * kParts) != CUDA_SUCCESS) return 100;
              if (cuMemAlloc(&to, kPart * kParts) != CUDA_SUCCESS) return 100;
              return static_cast<int>(cuMemcpyDtoD(to, from, kPart * kParts));
            }));
  EXPECT_EQ(0, in_process(large, [] {
              CUdeviceptr memory = 0;
              if (cuMemAlloc(&memory, kPart * kParts) != CUDA_SUCCESS) return 100;
              if (cuMemsetD8(memory + 5, 0xaa, 4096) != CUDA_SUCCESS) return 101;
              if (cuMemsetD8(memory, 0, kPart * kParts) != CUDA_SUCCESS) return 102;
              unsigned char bytes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
              cuMemcpyDtoH(bytes, memory + 5, sizeof bytes);
              return bytes[0] == 0 && bytes[7] == 0 ? 0 : 103;
            }));
}

TEST(Switches, WhereAMissingImageIsFoundOut) {
  // Codes of load, GetKernel and launch, as far as the steps before succeed.
  struct Row {
    const char* rule;
    int load, get_kernel, launch;
  };
  const Row rows[] = {{"load", 209, 0, 0}, {"get-kernel", 0, 209, 0}, {"first-use", 0, 0, 209}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.rule);
    const auto step = [&](int wanted) {
      return in_process({{"KSHIM_SIM_NO_IMAGE", row.rule}}, [wanted] {
        const Buffer image = cubin(75);
        CUlibrary library = nullptr;
        const int loaded =
            cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
        if (wanted == 0 || loaded != 0) return wanted == 0 ? loaded : 0;
        CUkernel kernel = nullptr;
        const int found = cuLibraryGetKernel(&kernel, library, "first");
        if (wanted == 1 || found != 0) return wanted == 1 ? found : 0;
        CUdeviceptr pointer = 0;
        int value = 0;
        void* arguments[] = {&pointer, &value};
        return static_cast<int>(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0,
                                               nullptr, arguments, nullptr));
      });
    };
    EXPECT_EQ(row.load, step(0));
    EXPECT_EQ(row.get_kernel, step(1));
    EXPECT_EQ(row.launch, step(2));
  }
}

TEST(Switches, LazyAndEagerLoading) {
  const auto mode_and_state = [] {
    CUmoduleLoadingMode mode{};
    cuModuleGetLoadingMode(&mode);
    const Buffer image = cubin(90);
    CUmodule module = nullptr;
    cuModuleLoadData(&module, image.data());
    CUfunction function = nullptr;
    cuModuleGetFunction(&function, module, "first");
    CUfunctionLoadingState state{};
    cuFuncIsLoaded(&state, function);
    const int before = state;
    cuFuncLoad(function);
    cuFuncIsLoaded(&state, function);
    return mode * 100 + before * 10 + static_cast<int>(state);
  };
  EXPECT_EQ(CU_MODULE_LAZY_LOADING * 100 + 1, in_process({}, mode_and_state));
  EXPECT_EQ(CU_MODULE_LAZY_LOADING * 100 + 1, in_process({{"CUDA_MODULE_LOADING", "LAZY"}}, mode_and_state));
  EXPECT_EQ(CU_MODULE_EAGER_LOADING * 100 + 11,
            in_process({{"CUDA_MODULE_LOADING", "EAGER"}}, mode_and_state));
}

// The error log's two forms, by the version of the driver, in a file, in memory and through a callback.
std::string logged_by(const char* driver) {
  char path[] = "/tmp/kshim-log-XXXXXX";
  close(::mkstemp(path));
  const int status = in_process({{"KSHIM_SIM_DRIVER", driver}, {"CUDA_LOG_FILE", path}}, [] {
    static std::string heard;
    CUlogsCallbackHandle handle = nullptr;
    if (cuLogsRegisterCallback(
            [](void*, CUlogLevel, char* text, size_t size) { heard.append(text, size) += '\n'; }, nullptr,
            &handle) != CUDA_SUCCESS) {
      return 100;
    }
    if (load(cubin(80)) != 209) return 101;
    if (cuLogsUnregisterCallback(handle) != CUDA_SUCCESS || load(cubin(80)) != 209) return 102;
    char text[4096] = {};
    size_t size = sizeof text;
    CUlogIterator from = 0;
    if (cuLogsDumpToMemory(&from, text, &size, 0) != CUDA_SUCCESS || size != std::string_view(text).size())
      return 103;
    // Heard once, written twice.
    if (heard.size() * 2 != size || std::string_view(text).substr(0, heard.size()) != heard) return 104;
    size = sizeof text;
    return cuLogsDumpToMemory(&from, text, &size, 0) == CUDA_SUCCESS && size == 0 ? 0 : 105;
  });
  std::ifstream file(path);
  std::string first;
  std::string second;
  std::getline(file, first);
  std::getline(file, second);
  ::unlink(path);
  // Without the time and the thread.
  const auto words = [](const std::string& line) {
    return line.substr(std::min(line.find("[CUDA]"), line.size()));
  };
  return std::to_string(status) + "|" + words(first) + "|" + words(second);
}

TEST(Switches, TheErrorLogHasTheFormOfTheDriversVersion) {
  EXPECT_EQ(logged_by("12.9"),
            "0|[CUDA][E][cuModuleLoadData] No device code available for GPU ISA 90"
            "|[CUDA][E][cuModuleLoadData] No device code available for GPU ISA 90");
  EXPECT_EQ(logged_by("13.4"),
            "0|[CUDA][E] No device code available for GPU ISA 90"
            "|[CUDA][E] Returning 209 (CUDA_ERROR_NO_BINARY_FOR_GPU) from cuModuleLoadData");
}

// Looked at later, as a card does it with lazy loading; at once with eager loading, which is assumed.
TEST(Switches, AFileThatIsNoImageIsALibraryUntilItIsAsked) {
  const auto loaded = [](const char* mode, bool ask) {
    return in_process({{"CUDA_MODULE_LOADING", mode}}, [ask] {
      CUlibrary library = nullptr;
      CUkernel kernel = nullptr;
      const int result =
          cuLibraryLoadFromFile(&library, "/proc/self/cmdline", nullptr, nullptr, 0, nullptr, nullptr, 0);
      return ask ? static_cast<int>(cuLibraryGetKernel(&kernel, library, "first")) : result;
    });
  };
  EXPECT_EQ(0, loaded("LAZY", false));
  EXPECT_EQ(200, loaded("LAZY", true));
  EXPECT_EQ(200, loaded("EAGER", false));
}

}  // namespace
}  // namespace kshim::sim::test

// SPDX-License-Identifier: Apache-2.0
// What the environment changes. The driver reads it once, so each case is a child process; the parent never
// calls it.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
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

}  // namespace
}  // namespace kshim::sim::test

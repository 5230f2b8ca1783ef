// SPDX-License-Identifier: Apache-2.0
// launch_many THREADS LAUNCHES FATBIN [kill|fork]: each thread launches the kernel `scale` so often. kill:
// the process ends by SIGKILL after that; fork: then a child initializes the driver for itself and launches
// three times.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

template <class Function>
Function entry(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(driver, name));
}

void* load(const char* fatbin) {
  int device = 0;
  void* context = nullptr;
  void* module = nullptr;
  void* function = nullptr;
  const int failed =
      entry<int (*)(unsigned)>("cuInit")(0) | entry<int (*)(int*, int)>("cuDeviceGet")(&device, 0) |
      entry<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device) |
      entry<int (*)(void*)>("cuCtxSetCurrent")(context) |
      entry<int (*)(void**, const char*)>("cuModuleLoad")(&module, fatbin) |
      entry<int (*)(void**, void*, const char*)>("cuModuleGetFunction")(&function, module, "scale");
  if (failed != 0) std::exit(1);
  return function;
}

using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                       void**, void**);

void launch(void* function, int times) {
  const auto call = entry<Launch>("cuLaunchKernel");
  void* data = nullptr;
  void* arguments[] = {&data};
  for (int i = 0; i < times; ++i)
    if (call(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != 0) std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 3;
  int times = std::atoi(argv[2]);
  pid_t child = -1;
  if (argc > 4 && std::strcmp(argv[4], "fork") == 0) child = fork();
  if (child == 0) times = 3;
  void* const function = load(argv[3]);
  std::vector<std::thread> threads;
  for (int i = std::atoi(argv[1]); i > 0; --i)
    threads.emplace_back([=] {
      // A context is current by thread.
      void* context = nullptr;
      int device = 0;
      entry<int (*)(int*, int)>("cuDeviceGet")(&device, 0);
      entry<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device);
      entry<int (*)(void*)>("cuCtxSetCurrent")(context);
      launch(function, times);
    });
  for (std::thread& thread : threads) thread.join();
  if (argc > 4 && std::strcmp(argv[4], "kill") == 0) kill(getpid(), SIGKILL);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}

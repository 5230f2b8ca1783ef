// SPDX-License-Identifier: Apache-2.0
// attack SCENARIO [FILE]: hosts that once crashed with the shim. Linked against nothing of CUDA; cuInit here
// is the program's own.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#ifdef ATTACK_OWN_CUINIT
extern "C" __attribute__((visibility("default"))) int cuInit(unsigned);
extern "C" int cuInit(unsigned) { return 77; }
#endif

namespace {

template <class Function>
Function look_up(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The libraries come and go while every mapped object is searched for a function that none defines.
int unloading(const char* first, const char* second) {
  std::atomic<bool> stop{false};
  const auto churn = [&stop](const char* path) {
    while (!stop.load()) {
      void* library = dlopen(path, RTLD_NOW);
      if (library != nullptr) dlclose(library);
    }
  };
  std::thread one(churn, first);
  std::thread two(churn, second);
  int found = 0;
  for (int i = 0; i < 20000; ++i) found += dlsym(RTLD_DEFAULT, "cuInit") != nullptr ? 1 : 0;
  stop.store(true);
  one.join();
  two.join();
  return found;
}

/// What was mapped where the library was is taken, so that it comes to lie elsewhere.
int reloading(const char* plugin) {
  int last = 0;
  for (int round = 0; round < 4; ++round) {
    void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 2;
    last = look_up<int (*)(int)>(library, "scale_all")(1000);
    dlclose(library);
    for (std::size_t i = 0; i < 40; ++i)
      mmap(nullptr, std::size_t{1} << (12 + i % 12), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  std::printf("%d\n", last);
  return 0;
}

void leave(int) { _exit(3); }

/// The least stack that a handler may count on, with a guard below it.
int small_stack(const char* plugin) {
  constexpr std::size_t kGuard = 65536;
  constexpr std::size_t kStack = 8192;
  void* library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 2;
  look_up<int (*)(int)>(library, "scale_all")(1000);
  auto* memory =
      static_cast<char*>(mmap(nullptr, kGuard + kStack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(memory + kGuard, kStack, PROT_READ | PROT_WRITE);
  stack_t stack{};
  stack.ss_sp = memory + kGuard;
  stack.ss_size = kStack;
  struct sigaction action {};
  action.sa_handler = leave;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0) return 2;
  raise(SIGUSR1);
  return 1;
}

struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  Driver() {
    void* context = nullptr;
    look_up<int (*)(unsigned)>(library, "cuInit")(0);
    look_up<int (*)(void**, int)>(library, "cuDevicePrimaryCtxRetain")(&context, 0);
    look_up<int (*)(void*)>(library, "cuCtxSetCurrent")(context);
  }
  int load(const char* image) const {
    void* module = nullptr;
    const int code = look_up<int (*)(void**, const void*)>(library, "cuModuleLoadData")(&module, image);
    if (code == 0) look_up<int (*)(void*)>(library, "cuModuleUnload")(module);
    return code;
  }
};

/// The driver rejects the null module before it looks at the name.
int bad_name() {
  const Driver driver;
  void* function = nullptr;
  const auto get = look_up<int (*)(void**, void*, const char*)>(driver.library, "cuModuleGetFunction");
  std::uintptr_t nowhere = 1;
  const char* name = nullptr;
  std::memcpy(&name, &nowhere, sizeof name);
  std::printf("%d\n", get(&function, nullptr, name));
  return 0;
}

/// Loads the image in FILE from memory, `rounds` times.
int loads(const char* file, int rounds) {
  std::ifstream in(file, std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(in), {}};
  image.push_back('\0');
  const Driver driver;
  int code = 0;
  for (int i = 0; i < rounds; ++i) code = driver.load(image.data());
  std::printf("%d\n", code);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view scenario = argc > 1 ? argv[1] : "";
  if (scenario == "unloading" && argc == 4) return unloading(argv[2], argv[3]);
  if (scenario == "reloading" && argc == 3) return reloading(argv[2]);
  if (scenario == "small_stack" && argc == 3) return small_stack(argv[2]);
  if (scenario == "bad_name") return bad_name();
  if (scenario == "loads" && argc == 4) return loads(argv[2], std::atoi(argv[3]));
  if (scenario == "own") {
    const auto init = look_up<int (*)(unsigned)>(RTLD_DEFAULT, "cuInit");
    std::printf("%d\n", init == nullptr ? -1 : init(0));
    return 0;
  }
  return 2;
}

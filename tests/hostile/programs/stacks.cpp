// SPDX-License-Identifier: Apache-2.0
// stacks FATBIN OTHER STEP BYTES [measure] (or, with the step "runtime", a plug-in of tests/blind for OTHER):
// makes one call of the driver in a thread whose stack has BYTES and a guard below it. FATBIN has an image
// for device 0, OTHER has none. Prints what the call answered, or, with `measure`, how many bytes of the
// stack it touched.
#include <pthread.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "driver.h"

namespace {

constexpr char kPaint = 0x5a;
std::vector<char> g_good;
std::vector<char> g_bad;
void* g_context = nullptr;
void* g_module = nullptr;
void* g_function = nullptr;
std::string_view g_step;
int g_answer = -1;
int (*g_plugin)() = nullptr;

int step() {
  if (g_module != nullptr && hostile::driver_function<int (*)(void*)>("cuCtxSetCurrent")(g_context) != 0)
    return -3;
  void* got = nullptr;
  if (g_step == "nothing") return 0;
  if (g_step == "init") return hostile::driver_function<int (*)(unsigned)>("cuInit")(0);
  if (g_step == "load") return hostile::load(g_good, &got);
  if (g_step == "failing-load") return hostile::load(g_bad, &got);
  if (g_step == "lookup") return hostile::look_up(g_module, "stressed", &got);
  if (g_step == "failing-lookup") return hostile::look_up(g_module, "no_such_kernel", &got);
  if (g_step == "launch") return hostile::launch(g_function, 1);
  if (g_step == "failing-launch") return hostile::launch(g_function, 4096);
  if (g_step == "runtime") return g_plugin();
  if (g_step == "dlsym") return hostile::driver_function<void*>("cuLaunchKernel_ptsz") != nullptr ? 0 : 1;
  if (g_step == "dlsym-default") return dlsym(RTLD_DEFAULT, "cuLaunchKernel_ptsz") == nullptr ? 0 : 1;
  return -2;
}

void* run(void*) {
  g_answer = step();
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  g_good = hostile::contents(argv[1]);
  g_bad = hostile::contents(argv[2]);
  g_step = argv[3];
  const std::size_t bytes = std::strtoul(argv[4], nullptr, 10);
  constexpr std::size_t kGuard = std::size_t{1} << 20U;
  if (g_step == "runtime") {
    void* library = dlopen(argv[2], RTLD_NOW);
    g_plugin = library == nullptr ? nullptr : reinterpret_cast<int (*)()>(dlsym(library, "plugin_run"));
    if (g_plugin == nullptr) return 3;
  } else if (g_step != "init" && g_step != "nothing") {
    if (hostile::attach(&g_context) != 0 || hostile::load(g_good, &g_module) != 0) return 3;
    if (hostile::look_up(g_module, "stressed", &g_function) != 0 || hostile::launch(g_function, 1) != 0)
      return 3;
  }
  auto* memory =
      static_cast<char*>(mmap(nullptr, kGuard + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  char* const stack = memory + kGuard;
  mprotect(stack, bytes, PROT_READ | PROT_WRITE);
  std::memset(stack, kPaint, bytes);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, bytes) != 0) return 4;
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, run, nullptr) != 0) return 4;
  pthread_join(thread, nullptr);
  std::size_t untouched = 0;
  while (untouched < bytes && stack[untouched] == kPaint) ++untouched;
  if (argc > 5)
    std::printf("%zu\n", bytes - untouched);
  else
    std::printf("%d\n", g_answer);
  return 0;
}

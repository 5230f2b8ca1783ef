// SPDX-License-Identifier: Apache-2.0
// stress THREADS ROUNDS GOOD BAD PLUGIN: as many threads load, look up, launch, fail and unload at once,
// through every route; each answer must be what one thread alone would have got. Prints "loads N", the number
// of load calls. Built twice: as a client like any other, for the preloaded shim, and with the shim's own
// sources linked in (KSHIM_LINKED), which is how ThreadSanitizer can see them.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#ifdef KSHIM_LINKED
#include "linked.h"
#endif

namespace {

std::vector<char> g_good;  // an image for the device
std::vector<char> g_bad;   // one for another
const char* g_plugin = nullptr;
void* g_driver = nullptr;
CUcontext g_context = nullptr;
std::atomic<unsigned long> g_loads{0};
std::atomic<int> g_wrong{0};

void expect(const char* what, int got, int wanted) {
  if (got == wanted) return;
  if (g_wrong.fetch_add(1) < 20) std::fprintf(stderr, "stress: %s: %d, not %d\n", what, got, wanted);
}

template <class Function>
Function look_up(void* handle, const char* name) {
#ifdef KSHIM_LINKED
  return reinterpret_cast<Function>(stress::look_up(handle, name, __builtin_return_address(0)));
#else
  return reinterpret_cast<Function>(dlsym(handle, name));
#endif
}

int launch(CUfunction function, unsigned threads) {
  int* out = nullptr;
  void* arguments[] = {&out};
  return cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr);
}

void load_and_launch(const void* image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  expect("cuModuleLoadData", cuModuleLoadData(&module, image), CUDA_SUCCESS);
  g_loads.fetch_add(1);
  expect("cuModuleGetFunction", cuModuleGetFunction(&function, module, "stressed"), CUDA_SUCCESS);
  expect("cuLaunchKernel", launch(function, 1), CUDA_SUCCESS);
  expect("a block too large", launch(function, 4096), CUDA_ERROR_INVALID_VALUE);
  CUfunction none = nullptr;
  expect("a name that is not there", cuModuleGetFunction(&none, module, "no_such_kernel"),
         CUDA_ERROR_NOT_FOUND);
  expect("cuModuleUnload", cuModuleUnload(module), CUDA_SUCCESS);
}

void load_library() {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  expect("cuLibraryLoadData",
         cuLibraryLoadData(&library, g_good.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), CUDA_SUCCESS);
  g_loads.fetch_add(1);
  expect("cuLibraryGetKernel", cuLibraryGetKernel(&kernel, library, "stressed"), CUDA_SUCCESS);
  expect("launch of a kernel", launch(reinterpret_cast<CUfunction>(kernel), 1), CUDA_SUCCESS);
  expect("cuLibraryUnload", cuLibraryUnload(library), CUDA_SUCCESS);
}

void load_wrongly() {
  CUmodule module = nullptr;
  expect("an image for another device", cuModuleLoadData(&module, g_bad.data()),
         CUDA_ERROR_NO_BINARY_FOR_GPU);
  const char nonsense[64] = "nothing of the kind";
  expect("no image", cuModuleLoadData(&module, nonsense), CUDA_ERROR_INVALID_IMAGE);
  expect("no file", cuModuleLoad(&module, "/nowhere/at/all.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
  g_loads.fetch_add(3);
}

void ask_for_functions(int thread) {
  using Launch = decltype(&cuLaunchKernel);
  using Get = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto get = look_up<Get>(g_driver, "cuGetProcAddress_v2");
  void* found = nullptr;
  expect("cuGetProcAddress", get("cuLaunchKernel", &found, 12000, thread % 2 == 0 ? 0 : 2, nullptr),
         CUDA_SUCCESS);
  const auto by_address = reinterpret_cast<Launch>(found);
  expect("a launch of nothing", by_address(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
         CUDA_ERROR_INVALID_HANDLE);
  expect("a function that is not there", get("cuNoSuchFunction", &found, 12000, 0, nullptr),
         CUDA_ERROR_NOT_FOUND);
  expect("dlsym", look_up<Launch>(g_driver, "cuLaunchKernel") == nullptr, 0);
  look_up<Launch>(RTLD_DEFAULT, "cuLaunchKernel");
}

void load_from_plugin() {
  void* plugin = dlopen(g_plugin, RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return expect("dlopen", 0, 1);
  const auto image = reinterpret_cast<const void* (*)()>(dlsym(plugin, "image"));
  load_and_launch(image());
  dlclose(plugin);
}

void register_code() {
#ifdef KSHIM_LINKED
  stress::register_and_forget(g_good.data(), "stressed");
#endif
}

void work(int thread, int rounds, std::atomic<int>& waiting) {
  waiting.fetch_sub(1);
  while (waiting.load() != 0) std::this_thread::yield();
  expect("cuCtxSetCurrent", cuCtxSetCurrent(g_context), CUDA_SUCCESS);
  const std::vector<char> own = g_good;  // an image in memory of this thread's
  for (int round = 0; round < rounds; ++round) {
    switch ((round + thread) % 6) {
      case 0:
        load_and_launch(own.data());
        break;
      case 1:
        load_library();
        break;
      case 2:
        load_wrongly();
        break;
      case 3:
        ask_for_functions(thread);
        break;
      case 4:
        load_from_plugin();
        break;
      default:
        register_code();
        break;
    }
  }
}

std::vector<char> bytes_of_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int threads = std::atoi(argv[1]);
  const int rounds = std::atoi(argv[2]);
  g_good = bytes_of_file(argv[3]);
  g_bad = bytes_of_file(argv[4]);
  g_plugin = argv[5];
  g_driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (g_good.empty() || g_bad.empty() || g_driver == nullptr) return 2;
  CUdevice device = 0;
  expect("cuInit", cuInit(0), CUDA_SUCCESS);
  expect("cuDeviceGet", cuDeviceGet(&device, 0), CUDA_SUCCESS);
  expect("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&g_context, device), CUDA_SUCCESS);
  std::atomic<int> waiting{threads};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back(work, i, rounds, std::ref(waiting));
  for (std::thread& one : all) one.join();
  std::printf("loads %lu\n", g_loads.load());
  return g_wrong.load() == 0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// What a driver answers, one fact a line ("name = value"), so that a real one and the simulated one can be
// compared call by call (tests/gpu/compare.py). Needs no runtime and no link to libcuda.   driver_facts
// FOLDER
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

void* g_driver = nullptr;
std::string g_folder;

template <class Function>
Function* entry(const char* name) {
  return reinterpret_cast<Function*>(dlsym(g_driver, name));
}
#define ENTRY(name) entry<decltype(name)>(#name)

void fact(const std::string& name, long long value) { std::printf("%s = %lld\n", name.c_str(), value); }
void fact(const std::string& name, const std::string& value) {
  std::printf("%s = %s\n", name.c_str(), value.c_str());
}

std::vector<char> read(const std::string& name) {
  std::ifstream file(g_folder + "/" + name, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  bytes.push_back(0);
  return bytes;
}

/// Whether dlsym and cuGetProcAddress give the same address: what the shim's routing rests on.
void addresses() {
  using Get = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  Get* get = entry<Get>("cuGetProcAddress_v2");
  struct Row {
    const char* asked;
    int version;
    cuuint64_t flags;
    const char* symbol;
  };
  const Row rows[] = {{"cuLaunchKernel", 4000, 0, "cuLaunchKernel"},
                      {"cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz"},
                      {"cuLibraryLoadData", 12000, 0, "cuLibraryLoadData"},
                      {"cuLibraryGetKernel", 12000, 0, "cuLibraryGetKernel"},
                      {"cuModuleLoadData", 2000, 0, "cuModuleLoadData"},
                      {"cuLaunchKernelEx", 11060, 0, "cuLaunchKernelEx"},
                      {"cuLaunchKernelEx", 11060, 2, "cuLaunchKernelEx_ptsz"},
                      {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
                      {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
                      {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
                      {"cuInit", 2000, 0, "cuInit"},
                      {"cuGraphLaunch", 10000, 2, "cuGraphLaunch_ptsz"}};
  for (const Row& row : rows) {
    void* pointer = nullptr;
    const CUresult result = get(row.asked, &pointer, row.version, row.flags, nullptr);
    fact(std::string("same_address.") + row.symbol,
         result == CUDA_SUCCESS ? (pointer == dlsym(g_driver, row.symbol)) : -result);
  }
  void* pointer = nullptr;
  fact("proc_address.empty_name", get("", &pointer, 0, 0, nullptr));
  CUdriverProcAddressQueryResult status{};
  fact("proc_address.unknown", get("cuNoSuchEntryPoint", &pointer, 13000, 0, &status));
  fact("proc_address.unknown.status", status);
}

void attributes(CUdevice device) {
  for (int number = 1; number <= 143; ++number) {
    int value = 0;
    const CUresult result =
        ENTRY(cuDeviceGetAttribute)(&value, static_cast<CUdevice_attribute>(number), device);
    fact("attribute." + std::to_string(number), result == CUDA_SUCCESS ? value : -1000 - result);
  }
}

/// The result of each step with one image: as a module and as a library, to a launch.
void load(const std::string& label, const std::vector<char>& image) {
  CUmodule module = nullptr;
  const CUresult loaded = ENTRY(cuModuleLoadData)(&module, image.data());
  fact("module." + label + ".load", loaded);
  CUfunction function = nullptr;
  if (loaded == CUDA_SUCCESS) {
    fact("module." + label + ".first", ENTRY(cuModuleGetFunction)(&function, module, "first"));
    CUfunction other = nullptr;
    fact("module." + label + ".second", ENTRY(cuModuleGetFunction)(&other, module, "second"));
    fact("module." + label + ".absent", ENTRY(cuModuleGetFunction)(&other, module, "absent"));
  }
  if (function != nullptr) {
    for (int number = 0; number <= 9; ++number) {
      int value = 0;
      const CUresult result =
          ENTRY(cuFuncGetAttribute)(&value, static_cast<CUfunction_attribute>(number), function);
      fact("module." + label + ".first.attribute." + std::to_string(number),
           result == CUDA_SUCCESS ? value : -1000 - result);
    }
    void* null_pointer = nullptr;
    int value = 1;
    void* arguments[] = {&null_pointer, &value};
    const auto launch = [&](const char* what, unsigned grid, unsigned block, unsigned shared) {
      fact("module." + label + ".launch." + what,
           ENTRY(cuLaunchKernel)(function, grid, 1, 1, block, 1, 1, shared, nullptr, arguments, nullptr));
    };
    launch("plain", 1, 32, 0);
    launch("grid_0", 0, 32, 0);
    launch("block_0", 1, 0, 0);
    launch("block_1025", 1, 1025, 0);
    launch("shared_48k", 1, 32, 48 * 1024);
    launch("shared_49k", 1, 32, 49 * 1024);
    launch("shared_1m", 1, 32, 1024 * 1024);
    fact("module." + label + ".synchronize", ENTRY(cuCtxSynchronize)());
  }
  if (module != nullptr) ENTRY(cuModuleUnload)(module);

  CUlibrary library = nullptr;
  const CUresult library_loaded =
      ENTRY(cuLibraryLoadData)(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  fact("library." + label + ".load", library_loaded);
  if (library_loaded != CUDA_SUCCESS) return;
  CUkernel kernel = nullptr;
  fact("library." + label + ".get_kernel", ENTRY(cuLibraryGetKernel)(&kernel, library, "first"));
  CUkernel absent = nullptr;
  fact("library." + label + ".get_kernel_absent", ENTRY(cuLibraryGetKernel)(&absent, library, "absent"));
  fact("library." + label + ".get_kernel_second", ENTRY(cuLibraryGetKernel)(&absent, library, "second"));
  CUmodule inner = nullptr;
  fact("library." + label + ".get_module", ENTRY(cuLibraryGetModule)(&inner, library));
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  fact("library." + label + ".get_global", ENTRY(cuLibraryGetGlobal)(&address, &bytes, library, "counter"));
  if (kernel != nullptr) {
    fact("library." + label + ".get_function", ENTRY(cuKernelGetFunction)(&function, kernel));
    int value = 1;
    fact("library." + label + ".attribute",
         ENTRY(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, 0));
    void* null_pointer = nullptr;
    void* arguments[] = {&null_pointer, &value};
    fact("library." + label + ".launch", ENTRY(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), 1, 1, 1,
                                                               1, 1, 1, 0, nullptr, arguments, nullptr));
    fact("library." + label + ".synchronize", ENTRY(cuCtxSynchronize)());
  }
  ENTRY(cuLibraryUnload)(library);
}

void images() {
  std::ifstream list(g_folder + "/images.txt");
  for (std::string name; std::getline(list, name);)
    if (!name.empty()) load(name, read(name));
  std::vector<char> fatbin = read("all.fatbin");
  const auto damaged = [&](const char* label, std::size_t at, std::size_t size, int fill) {
    std::vector<char> copy = fatbin;
    std::memset(copy.data() + at, fill, size);
    load(label, copy);
  };
  damaged("damaged.magic", 0, 4, 0x11);
  damaged("damaged.entry_kind", 16, 2, 0x7f);
  load("damaged.text", {'h', 'e', 'l', 'l', 'o', 0});
  std::string ptx(read("sm_75.ptx").data());
  const auto replaced = [&](const char* label, const std::string& from, const std::string& to) {
    std::string text = ptx;
    const auto at = text.find(from);
    if (at != std::string::npos) text.replace(at, from.size(), to);
    std::vector<char> bytes(text.begin(), text.end());
    bytes.push_back(0);
    load(label, bytes);
  };
  replaced("ptx.newer_isa", ".version 9.0", ".version 9.9");
  replaced("ptx.no_version", ".version", "//");
  replaced("ptx.syntax_error", ".visible .entry first", ".visible .entry first(((");
  replaced("ptx.target_130", ".target sm_75", ".target sm_130");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: driver_facts FOLDER\n"), 2;
  g_folder = argv[1];
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == nullptr) return std::printf("skip: %s\n", dlerror()), 77;
  if (const CUresult result = ENTRY(cuInit)(0); result != CUDA_SUCCESS)
    return std::printf("skip: cuInit answers %d\n", result), 77;
  int version = 0;
  ENTRY(cuDriverGetVersion)(&version);
  fact("driver.version", version);
  CUdevice device = 0;
  ENTRY(cuDeviceGet)(&device, 0);
  char name[128] = {};
  ENTRY(cuDeviceGetName)(name, sizeof name, device);
  fact("device.name", std::string(name));
  int mode = 0;
  ENTRY(cuModuleGetLoadingMode)(reinterpret_cast<CUmoduleLoadingMode*>(&mode));
  fact("loading_mode", mode);
  addresses();
  attributes(device);
  CUcontext context = nullptr;
  fact("context.before", ENTRY(cuCtxSynchronize)());
  ENTRY(cuDevicePrimaryCtxRetain)(&context, device);
  fact("context.current", ENTRY(cuCtxSetCurrent)(context));
  CUdeviceptr memory = 0;
  fact("memory.alloc_0", entry<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&memory, 0));
  fact("memory.alloc_huge", entry<CUresult(CUdeviceptr*, std::size_t)>("cuMemAlloc_v2")(&memory, 1ULL << 50));
  fact("memory.free_0", entry<CUresult(CUdeviceptr)>("cuMemFree_v2")(0));
  fact("memory.free_foreign", entry<CUresult(CUdeviceptr)>("cuMemFree_v2")(0x1234));
  images();
  return 0;
}

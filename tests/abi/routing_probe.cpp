// SPDX-License-Identifier: Apache-2.0
// Looks driver functions up in every way there is and prints the owner of what was found: "HOW NAME OWNER".
// Linked to no CUDA.
#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

const char* owner_of(void* address) {
  Dl_info info{};
  if (address == nullptr) return "null";
  if (dladdr(address, &info) == 0) return "unknown";
  const char* slash = strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
}

void show(const char* how, const char* name, void* address) {
  printf("%s %s %s\n", how, name, owner_of(address));
}

constexpr const char* kNames[] = {
#define KSHIM_NAME_driver(name) #name,
#define KSHIM_NAME_runtime(name)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_NAME_##layer(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
    // Not hooked; and no function of the driver, however it begins.
    "cuDeviceGetName", "cuGetExportTable", "cuMemFree_v2", "cudnnCreate", "cublasCreate_v2"};

using GetProcAddress = int (*)(const char*, void**, int, std::uint64_t, int*);

void ask(GetProcAddress get, const char* name, int version, std::uint64_t flags) {
  void* found = reinterpret_cast<void*>(&ask);
  void* const before = found;
  const int code = get(name, &found, version, flags, nullptr);
  printf("ask(%d,%d) %s %s\n", version, static_cast<int>(flags), *name == 0 ? "(empty)" : name,
         code != 0 ? (found == before || found == nullptr ? "refused" : "refused-but-written")
                   : owner_of(found));
}

}  // namespace

int main() {
  dlerror();
  void* early = dlsym(RTLD_DEFAULT, "cuInit");
  printf("early cuInit %s %s\n", owner_of(early), dlerror() == nullptr ? "silent" : "dlerror");
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return 2;
  dlerror();
  errno = 77;
  for (const char* name : kNames) {
    void* found = dlsym(handle, name);
    printf("dlerror %s %s\n", name, dlerror() == nullptr ? "none" : "set");
    show("handle", name, found);
    show("default", name, dlsym(RTLD_DEFAULT, name));
    dlerror();
  }
  printf("errno - %d\n", errno);
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(handle, "cuGetProcAddress_v2"));
  ask(get, "", 0, 0);
  ask(get, "cuNoSuchFunction", 13000, 0);
  ask(get, "cuDeviceGetName", 2000, 0);
  ask(get, "cuGetProcAddress", 11030, 0);
  ask(get, "cuGetProcAddress", 12000, 0);
  ask(get, "cuLaunchKernel", 4000, 0);
  ask(get, "cuLaunchKernel", 7000, 2);
  ask(get, "cuCtxSynchronize", 2000, 0);
  ask(get, "cuCtxSynchronize", 13000, 0);
  void* legacy = nullptr;
  void* per_thread = nullptr;
  get("cuLaunchKernel", &legacy, 4000, 0, nullptr);
  get("cuLaunchKernel", &per_thread, 7000, 2, nullptr);
  printf("differ cuLaunchKernel %s\n", legacy != per_thread ? "yes" : "no");
  void* self = nullptr;
  get("cuGetProcAddress", &self, 12000, 0, nullptr);
  ask(reinterpret_cast<GetProcAddress>(self), "cuLibraryLoadData", 12000, 0);
  return 0;
}

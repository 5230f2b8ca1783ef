// SPDX-License-Identifier: Apache-2.0
// Looks every hooked driver function up in every way there is and prints what came back, one line a question:
//   KEY<tab>owner of the pointer, errno kept or not, dlerror() set or not, status
// `routing_matrix lookups LIBRARY` asks by dlsym and dlvsym, from here and from LIBRARY (routing_caller.cpp),
// before and after the driver is loaded. `routing_matrix questions` asks cuGetProcAddress. `routing_matrix
// calls` calls what it gets, with zeros and before cuInit, so that the driver refuses: its own trace then
// says which functions were reached.
#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr const char* kHooked[] = {
#define KSHIM_NAME_driver(name) #name,
#define KSHIM_NAME_runtime(name)
#define KSHIM_HOOK(layer, name, ret, params, args, stage) KSHIM_NAME_##layer(name)
#include "cuda/hooks.def"
#undef KSHIM_HOOK
};
constexpr const char* kOthers[] = {"cuDeviceGetName", "cuMemFree_v2", "cuMemAlloc",
                                   "cuCtxCreate",     "cudnnCreate",  "cuNone"};

using Lookup = void* (*)(void*, const char*, const char*);
using GetV1 = int (*)(const char*, void**, int, std::uint64_t);
using GetV2 = int (*)(const char*, void**, int, std::uint64_t, int*);

constexpr int kErrno = 77;
std::map<void*, std::string> g_variants;  // in the driver: which hooked function it is

std::string owner_of(void* address) {
  Dl_info info{};
  if (address == nullptr) return "null";
  if (dladdr(address, &info) == 0) return "unknown";
  const char* slash = std::strrchr(info.dli_fname, '/');
  const std::string file = slash == nullptr ? info.dli_fname : slash + 1;
  const auto variant = g_variants.find(address);
  return file == "libcuda.so.1" && variant != g_variants.end() ? file + ":" + variant->second : file;
}

void* look_up_here(void* handle, const char* name, const char* version) {
  return version == nullptr ? dlsym(handle, name) : dlvsym(handle, name, version);
}

/// A name's answer in one phase from one caller: by the driver's handle where there is one, and without.
void look_up(const std::string& phase, Lookup caller, void* driver, const char* name) {
  const struct {
    const char* how;
    void* handle;
    bool asked;
  } handles[] = {
      {"handle", driver, driver != nullptr}, {"default", RTLD_DEFAULT, true}, {"next", RTLD_NEXT, true}};
  for (const auto& handle : handles) {
    if (!handle.asked) continue;
    for (const char* version :
         {static_cast<const char*>(nullptr), "KSHIM_1", "libcuda.so.1", "libcudart.so.13"}) {
      dlerror();
      errno = kErrno;
      void* found = caller(handle.handle, name, version);
      const int after = errno;
      const bool failed = dlerror() != nullptr;
      std::printf("%s %s %s@%s\t%s errno %s dlerror %s\n", phase.c_str(), handle.how, name,
                  version == nullptr ? "" : version, owner_of(found).c_str(),
                  after == kErrno ? "kept" : "changed", failed ? "set" : "none");
    }
  }
}

void look_all_up(const std::string& phase, Lookup library, void* driver) {
  for (const char* name : kHooked) {
    look_up(phase + " here", look_up_here, driver, name);
    look_up(phase + " library", library, driver, name);
  }
  for (const char* name : kOthers) look_up(phase + " here", look_up_here, driver, name);
}

/// cuMemAlloc_v2, cuLaunchKernel_ptsz -> what cuGetProcAddress is asked for.
std::string plain_name(std::string name) {
  for (const char* ending : {"_ptsz", "_ptds"})
    if (name.ends_with(ending)) name.resize(name.size() - 5);
  if (name.size() > 3 && name.substr(name.size() - 3, 2) == "_v") name.resize(name.size() - 3);
  return name;
}

struct Answer {
  int code = 0;
  void* found = nullptr;
};

/// Each name in each spelling x every CUDA version that brought a variant, and some between x the flags x
/// both functions.
template <class Told>
void ask_all(void* driver, Told told) {
  constexpr int kVersions[] = {0,     2000,  3000,  3010,  3020,  4000,  4010,  5000,  5050,  6000,  6050,
                               7000,  7050,  8000,  9000,  9010,  9020,  10000, 10010, 10020, 11000, 11010,
                               11020, 11030, 11040, 11050, 11060, 11070, 11080, 12000, 12010, 12020, 12030,
                               12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020, 13030, 99000};
  std::set<std::string> names(std::begin(kOthers), std::end(kOthers));
  for (const char* name : kHooked) names.insert({name, plain_name(name)});
  names.insert("");
  const auto v1 = reinterpret_cast<GetV1>(dlsym(driver, "cuGetProcAddress"));
  const auto v2 = reinterpret_cast<GetV2>(dlsym(driver, "cuGetProcAddress_v2"));
  void* own[2] = {};  // as a runtime asks for the function itself, and goes on with what it gets
  v2("cuGetProcAddress", &own[0], 11030, 0, nullptr);
  v2("cuGetProcAddress", &own[1], 12000, 0, nullptr);
  for (const std::string& name : names)
    for (const int version : kVersions)
      for (const std::uint64_t flags : {0U, 1U, 2U, 3U, 99U})
        for (int function = 0; function < 4; ++function) {
          Answer answer{0, &answer};
          int status = -7;
          errno = kErrno;
          if (function % 2 == 0)
            answer.code = (function == 0 ? v1 : reinterpret_cast<GetV1>(own[0]))(name.c_str(), &answer.found,
                                                                                 version, flags);
          else
            answer.code = (function == 1 ? v2 : reinterpret_cast<GetV2>(own[1]))(name.c_str(), &answer.found,
                                                                                 version, flags, &status);
          const bool kept = errno == kErrno;
          if (answer.found == &answer) answer.found = nullptr, status += 1000;  // not written
          const std::string key = name + " " + std::to_string(version) + " " + std::to_string(flags) + " " +
                                  std::to_string(function);
          told(key, name, answer, status, kept);
        }
}

/// Calls it with more zeros than any function has parameters. A function that wants fewer does not look at
/// the rest.
void call(void* function) {
  using Any =
      int (*)(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
              std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
  errno = kErrno;
  const int code = reinterpret_cast<Any>(function)(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  std::printf("called\t%d errno %s\n", code, errno == kErrno ? "kept" : "changed");
}

/// These answer, or begin, something even before cuInit.
bool is_callable(std::string_view name) {
  return name.starts_with("cu") && !name.starts_with("cuInit") && !name.starts_with("cuGetProcAddress") &&
         !name.starts_with("cuGetExportTable");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "lookups" && argc == 3) {
    void* library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
    const auto from_there =
        library == nullptr ? nullptr : reinterpret_cast<Lookup>(dlsym(library, "look_up_there"));
    if (from_there == nullptr) return 2;
    look_all_up("before", from_there, nullptr);
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr) return 2;
    for (const char* name : kHooked)
      if (void* address = dlsym(driver, name)) g_variants.emplace(address, name);
    look_all_up("local", from_there, driver);
    dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    look_all_up("global", from_there, driver);
    return 0;
  }
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 2;
  if (mode == "questions") {
    for (const char* name : kHooked)
      if (void* address = dlsym(driver, name)) g_variants.emplace(address, name);
    ask_all(driver, [](const std::string& key, const std::string&, Answer answer, int status, bool kept) {
      std::printf("%s\t%s code %d status %d errno %s\n", key.c_str(), owner_of(answer.found).c_str(),
                  answer.code, status, kept ? "kept" : "changed");
    });
    return 0;
  }
  if (mode == "calls") {
    std::set<void*> called;
    const auto call_once = [&called](void* function) {
      if (function != nullptr && called.insert(function).second) call(function);
    };
    for (const char* name : kHooked)
      if (is_callable(name)) call_once(dlsym(driver, name));
    ask_all(driver, [&](const std::string&, const std::string& name, Answer answer, int, bool) {
      if (answer.code == 0 && is_callable(name)) call_once(answer.found);
    });
    return 0;
  }
  return 2;
}

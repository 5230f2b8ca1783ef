// SPDX-License-Identifier: Apache-2.0
// What only a real driver can tell, one answer a line: "question = answer | evidence". questions NAMES: a
// file with the driver's functions that the shim stands in for, one a line.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

void* g_driver = nullptr;

template <class Function>
Function* entry(const char* name) {
  return reinterpret_cast<Function*>(dlsym(g_driver, name));
}

void answer(const std::string& question, const std::string& text, const std::string& evidence) {
  std::printf("%s = %s | %s\n", question.c_str(), text.c_str(), evidence.c_str());
  std::fflush(stdout);
}

using Get = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// cuLaunchKernel_ptsz is cuLaunchKernel with the flag for per-thread streams; cuMemAlloc_v2 is a later
/// version.
struct Asked {
  std::string name;
  cuuint64_t flags = 0;
};
Asked asked_as(std::string name) {
  Asked out;
  for (const char* end : {"_ptsz", "_ptds"})
    if (ends_with(name, end)) {
      out.flags = 2;
      name.resize(name.size() - 5);
    }
  for (const char* end : {"_v2", "_v3", "_v4"})
    if (ends_with(name, end)) name.resize(name.size() - 3);
  out.name = name;
  return out;
}

/// The first version with which cuGetProcAddress gives the address that dlsym gives.
void same_address(const std::string& name) {
  static Get* const get = entry<Get>("cuGetProcAddress_v2");
  void* const symbol = dlsym(g_driver, name.c_str());
  if (symbol == nullptr) {
    answer("address." + name, "absent", "dlsym finds nothing");
    return;
  }
  const Asked asked = asked_as(name);
  void* other = nullptr;
  for (int major = 2; major <= 13; ++major)
    for (int minor = 0; minor <= 9; ++minor) {
      void* found = nullptr;
      const int version = major * 1000 + minor * 10;
      if (get(asked.name.c_str(), &found, version, asked.flags, nullptr) != CUDA_SUCCESS) continue;
      if (found == symbol) {
        answer("address." + name, "same", "cuGetProcAddress from version " + std::to_string(version));
        return;
      }
      other = found;
    }
  Dl_info info{};
  const bool named = other != nullptr && dladdr(other, &info) != 0 && info.dli_sname != nullptr;
  answer("address." + name, other == nullptr ? "never handed out" : "different",
         named ? std::string("the last one is ") + info.dli_sname : "the last one has no symbol");
}

struct Mapping {
  std::uintptr_t low = 0, high = 0;
  std::string line;
};
Mapping mapping_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    Mapping out;
    if (std::sscanf(line.c_str(), "%lx-%lx", &out.low, &out.high) == 2 && wanted >= out.low &&
        wanted < out.high) {
      out.line = line;
      return out;
    }
  }
  return {};
}

std::string rights_of(const Mapping& mapping) {
  const std::size_t space = mapping.line.find(' ');
  return space == std::string::npos ? "?" : mapping.line.substr(space + 1, 4);
}

void table(const char* name, const unsigned char (&uuid)[16], const std::vector<int>& slots) {
  const std::string question = std::string("table.") + name;
  CUuuid id{};
  std::memcpy(&id, uuid, sizeof id);
  const void* found = nullptr;
  const CUresult result = entry<decltype(cuGetExportTable)>("cuGetExportTable")(&found, &id);
  if (result != CUDA_SUCCESS || found == nullptr) {
    answer(question, "none", "cuGetExportTable answers " + std::to_string(result));
    return;
  }
  const Mapping where = mapping_of(found);
  const std::size_t path = where.line.find('/');
  const std::string file =
      path == std::string::npos ? "no file" : where.line.substr(where.line.rfind('/') + 1);
  answer(question, std::to_string(*static_cast<const std::uint64_t*>(found)) + " bytes",
         "in " + file + ", " + rights_of(where));
  for (const int slot : slots) {
    const void* function = static_cast<const void* const*>(found)[slot];
    answer(question + ".slot" + std::to_string(slot), rights_of(mapping_of(function)),
           "rights of what it leads to, " + std::string(function == nullptr ? "null" : "not null"));
  }
  const long page = sysconf(_SC_PAGESIZE);
  auto* const address = const_cast<char*>(static_cast<const char*>(found));
  auto* const begin = address - reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(page);
  const bool writable = rights_of(where)[1] == 'w';
  const int changed = writable ? 0 : mprotect(begin, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE);
  answer(question + ".mprotect", changed == 0 ? "allowed" : "refused",
         writable ? "writable already" : "PROT_READ | PROT_WRITE and back");
  if (!writable && changed == 0) mprotect(begin, static_cast<std::size_t>(page), PROT_READ);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == nullptr) return std::printf("skip: %s\n", dlerror()), 77;
  if (const CUresult result = entry<decltype(cuInit)>("cuInit")(0); result != CUDA_SUCCESS)
    return std::printf("skip: cuInit answers %d\n", result), 77;
  std::ifstream names(argv[1]);
  for (std::string name; std::getline(names, name);)
    if (!name.empty()) same_address(name);
  table("CUDART_INTERFACE",
        {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
        {1, 2, 6, 7, 8});
  table("CUDA_13_REQUIREMENTS",
        {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9}, {});
  return 0;
}

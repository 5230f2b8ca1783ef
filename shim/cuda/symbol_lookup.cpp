// SPDX-License-Identifier: Apache-2.0
#include "cuda/symbol_lookup.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstring>

#include "cuda/compilers.h"
#include "cuda/cuda_libraries.h"
#include "cuda/driver_table.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/text_buffer.h"
#include "process/link_map.h"
#include "report/run_socket.h"

void* kshim_real_dlsym = nullptr;
void* kshim_real_dlvsym = nullptr;

namespace kshim::shim {
namespace {

using DlsymFn = void* (*)(void*, const char*);
using DlvsymFn = void* (*)(void*, const char*, const char*);

constexpr std::string_view kLookups[] = {"dlsym", "dlvsym"};

struct LookupSearch {
  bool after_shim = false;
  void* found[2] = {};

  bool complete() const noexcept { return found[0] != nullptr && found[1] != nullptr; }
  void take(const LoadedElf& elf) noexcept {
    for (std::size_t i = 0; i < 2; ++i)
      if (found[i] == nullptr) found[i] = elf.find_symbol(kLookups[i], gnu_hash(kLookups[i]));
  }
};

// The next definition after us: libc.so.6 (libdl.so.2 before glibc 2.34), or another tool's that hooks dlsym
// too. By ld.so's own list (the program's DT_DEBUG), without dl_iterate_phdr: ThreadSanitizer stands in for
// that and, while it starts, asks dlsym for the real one.
bool is_shim_map(const link_map& map) noexcept { return map.l_ld == _DYNAMIC; }

LoadedElf elf_of(const link_map& map) noexcept {
  // Libraries begin at address 0 of their own, with their ELF header; a prelinked one has l_addr 0.
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(map.l_addr);
  if (header == nullptr || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return {};
  return {map.l_addr, reinterpret_cast<const ElfW(Phdr)*>(map.l_addr + header->e_phoff), header->e_phnum};
}

void search_by_link_map(LookupSearch& search) noexcept {
  const link_map* map = first_map();
  while (map != nullptr && !is_shim_map(*map)) map = map->l_next;
  for (map = map == nullptr ? nullptr : map->l_next; map != nullptr && !search.complete(); map = map->l_next)
    search.take(elf_of(*map));
}

bool search_object(void* context, const ObjectView& object) {
  auto& search = *static_cast<LookupSearch*>(context);
  if (is_shim(object.elf.high() - 1)) {
    search.after_shim = true;
  } else if (search.after_shim) {
    search.take(object.elf);
  }
  return !search.complete();
}

bool is_compiler(const HookRow& row) noexcept {
  return row.layer == Layer::nvrtc || row.layer == Layer::nvjitlink;
}

void* look_up_plainly(void* handle, const char* name, const char* version) noexcept {
  return version == nullptr ? reinterpret_cast<DlsymFn>(kshim_real_dlsym)(handle, name)
                            : reinterpret_cast<DlvsymFn>(kshim_real_dlvsym)(handle, name, version);
}

/// A function that a handle gave out: ours instead, where it is the driver's or a shared runtime's.
void* route_found(void* address, std::size_t row) noexcept {
  const ObjectView owner = object_at(address);
  if (!owner) return address;
  const std::string_view file = base_name(owner.path);
  if (kHooks[row].layer == Layer::driver) {
    if (!file.starts_with("libcuda.so")) return address;
    adopt_driver(owner);
    return route_driver(address);
  }
  if (is_compiler(kHooks[row])) return compiler_wrapper(static_cast<Hook>(row), address);
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const auto runtime = static_cast<Runtime>(i);
    const auto hook = static_cast<Hook>(row);
    if (!is_runtime(owner.elf, runtime)) continue;
    AnyFunction real = runtime_real(runtime, hook);
    if (real == nullptr) real = find_runtime(runtime, hook);
    return real == address ? runtime_wrapper(runtime, hook) : address;
  }
  return address;
}

}  // namespace

AnyFunction route_driver(AnyFunction address) noexcept {
  const std::size_t row = row_at(address);
  return row == kHookCount ? address : routed_wrapper(static_cast<Hook>(row));
}

}  // namespace kshim::shim

using namespace kshim::shim;

void kshim_find_real_lookups(void) noexcept {
  LookupSearch search;
  search_by_link_map(search);
  if (!search.complete()) each_mapped(search_object, &search);
  kshim_real_dlvsym = search.found[1];
  kshim_real_dlsym = search.found[0];
}

namespace {

/// Our export would be libc's answer to RTLD_NEXT: the caller comes before the shim in link order (the
/// program, an earlier preload), and nothing between them has such a definition.
bool shim_is_next_of(const ObjectView& caller, const char* name, const char* version) noexcept {
  bool after_caller = false;
  for (const link_map* map = first_map(); map != nullptr; map = map->l_next) {
    if (is_shim_map(*map)) return after_caller;
    if (after_caller) {
      const std::string_view wanted = version == nullptr ? std::string_view() : version;
      if (elf_of(*map).find_symbol(name, gnu_hash(name), wanted) != nullptr) return false;
    }
    after_caller = after_caller || map->l_addr == caller.elf.base();
  }
  return false;
}

/// Whether a definition is mapped that is not the shim's, wherever it lies.
bool is_defined_somewhere(std::size_t row) noexcept {
  const auto hook = static_cast<Hook>(row);
  if (kHooks[row].layer == Layer::driver) {
    if (driver_export(hook) == nullptr) find_driver();
    return driver_export(hook) != nullptr;
  }
  if (is_compiler(kHooks[row])) return has_compiler(hook);
  bool defined = false;
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const auto runtime = static_cast<Runtime>(i);
    defined = defined || runtime_real(runtime, hook) != nullptr || find_runtime(runtime, hook) != nullptr;
  }
  return defined;
}

/// The preload comes first in the global scope, so libc's answer is our export even in a process without
/// CUDA. Whoever asks whether CUDA is there must hear what he would hear without us.
bool is_there_without_shim(void* handle, const char* name, const ObjectView& caller, const char* version,
                           std::size_t row) noexcept {
  if (handle == RTLD_NEXT && !shim_is_next_of(caller, name, version)) return true;  // libc will not find ours
  if (handle == RTLD_DEFAULT) {
    if (!is_shim(look_up_plainly(RTLD_DEFAULT, name, version))) return true;
    // The driver has no versions: whoever names one asks for nothing of the driver's.
    const bool possible = version == nullptr || kHooks[row].layer != Layer::driver;
    if (possible && caller && !came_with_the_program(caller.elf.base()) && is_defined_somewhere(row))
      return true;
  }
  // Asked from here, RTLD_NEXT means "after the shim".
  return look_up_plainly(RTLD_NEXT, name, version) != nullptr;
}

bool is_first_door(std::size_t row) noexcept {
  return row == index_of(Hook::cuGetProcAddress) || row == index_of(Hook::cuGetProcAddress_v2);
}

/// The runtime of CUDA 13 looks for nothing else where the driver has no cuGetProcAddress_v2 (before CUDA
/// 12): it answers 35 without having asked the driver for its version. `kshim run` is to know it all the
/// same.
void tell_old_driver(void* handle) noexcept {
  if (options().run_socket.empty()) return;
  using VersionFn = abi::Result (*)(int*);
  const auto ask = reinterpret_cast<VersionFn>(look_up_plainly(handle, "cuDriverGetVersion", nullptr));
  int number = 0;
  if (ask != nullptr && !is_shim(reinterpret_cast<void*>(ask)) && ask(&number) == 0)
    note_driver_version(number);
}

}  // namespace

LookupAnswer kshim_look_up(void* handle, const char* name, const void* caller, const char* version) noexcept {
  constexpr LookupAnswer kNotOurs{nullptr, 0};
  const bool names_none = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
  if (!options().enabled && !names_none) return kNotOurs;
  const std::size_t row = find_hook(name);
  if (row == kHookCount) return kNotOurs;
  const ErrnoKeeper keeper;
  recheck_driver();
  const ObjectView asking = object_at(caller);
  if (is_driver_file(asking.path)) return kNotOurs;
  if (names_none) {
    // What RTLD_NEXT means depends on the caller, which only a jump to libc preserves. The look-up before it
    // has failed where there is nothing: its NULL and dlerror() are what the caller expects.
    return is_there_without_shim(handle, name, asking, version, row) ? kNotOurs : LookupAnswer{nullptr, 1};
  }
  void* address = look_up_plainly(handle, name, version);
  if (address == nullptr && is_first_door(row)) {
    tell_old_driver(handle);
    address = look_up_plainly(handle, name, version);  // dlerror() is about this name
  }
  if (address != nullptr && row == index_of(Hook::cuLibraryLoadData)) note_loads_libraries(caller);
  if (address == nullptr || is_shim(address)) return {address, 1};
  return {route_found(address, row), 1};
}

namespace kshim::shim {

namespace {

// Newest CUDA whose cuGetProcAddress versions are known here: a later version asked for may mean another
// signature.
constexpr int kNewestKnownCuda = 13030;
constexpr std::uint64_t kPerThreadStream = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

/// Drivers are expected to answer with the addresses of their exports. Should one hand out private ones, a
/// name that never had a second signature still says what is meant: the plain row, or the _ptsz one by flag.
AnyFunction route_private(const char* symbol, AnyFunction address, int version,
                          std::uint64_t flags) noexcept {
  const ObjectView owner = object_at(address);
  if (version > kNewestKnownCuda || !owner || !in_driver(address) ||
      owner.elf.has_dynamic_address(reinterpret_cast<std::uintptr_t>(address)))
    return address;
  Text<128> name;
  name << symbol;
  if ((flags & kPerThreadStream) != 0) name << "_ptsz";
  std::size_t row = find_hook(name.view());
  if (row == kHookCount) row = find_hook(symbol);
  if (row == kHookCount || kHooks[row].layer != Layer::driver) return address;
  name << "_v2";
  if (find_hook(name.view()) != kHookCount) return address;
  set_driver_own(static_cast<Hook>(row), address);
  return routed_wrapper(static_cast<Hook>(row));
}

}  // namespace

void route_answer(const char* symbol, void** pfn, int version, std::uint64_t flags,
                  const void* caller) noexcept {
  if (!options().enabled || symbol == nullptr || pfn == nullptr || *pfn == nullptr || in_driver(caller))
    return;
  const ErrnoKeeper keeper;
  AnyFunction routed = route_driver(*pfn);
  if (routed == *pfn && find_hook(symbol) != kHookCount) routed = route_private(symbol, *pfn, version, flags);
  if (routed == routed_wrapper(Hook::cuLibraryLoadData)) note_loads_libraries(caller);
  *pfn = routed;
}

}  // namespace kshim::shim

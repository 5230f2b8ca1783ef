// SPDX-License-Identifier: Apache-2.0
#include "exports/symbol_lookup.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>

#include "cuda/compilers.h"
#include "cuda/cuda_libraries.h"
#include "cuda/driver_table.h"
#include "cuda/rebind.h"
#include "guest/errno_keeper.h"
#include "guest/options.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "process/link_map.h"
#include "report/run_socket.h"
#include "report/stderr_log.h"

namespace kshim::shim {
namespace {

using DlsymFn = void* (*)(void*, const char*);
using DlvsymFn = void* (*)(void*, const char*, const char*);

bool is_compiler(const HookRow& row) noexcept {
  return row.layer == Layer::nvrtc || row.layer == Layer::nvjitlink;
}

void* look_up_plainly(void* handle, const char* name, const char* version) noexcept {
  return version == nullptr ? reinterpret_cast<DlsymFn>(kshim_real_dlsym)(handle, name)
                            : reinterpret_cast<DlvsymFn>(kshim_real_dlvsym)(handle, name, version);
}

/// Replaces a function that was looked up in a handle by its wrapper, if it is the driver's or a shared
/// runtime's. A handler that has interrupted the owner of the index knows no file: functions that were looked
/// up before are known by their addresses.
void* wrap_dlsym_result(void* address, std::size_t row) noexcept {
  // nvcc's code is linked to these, and gives pointers that can be read.
  if (kHooks[row].stage == Stage::registration) return address;
  if (in_driver(address)) return wrap_driver_function(address);
  const LoadedObject owner = find_object_in_use(address);
  if (kHooks[row].layer == Layer::driver) {
    if (owner && (!is_libcuda(owner) || !adopt_driver(owner))) return address;
    return wrap_driver_function(address);
  }
  if (is_compiler(kHooks[row])) return owner ? compiler_wrapper(static_cast<Hook>(row), address) : address;
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const auto runtime = static_cast<Runtime>(i);
    const auto hook = static_cast<Hook>(row);
    if (owner ? !is_runtime(owner.elf, runtime) : known_runtime(runtime, hook) != address) continue;
    AnyFunction real = known_runtime(runtime, hook);
    if (real == nullptr) real = find_runtime(runtime, hook);
    return real == address ? runtime_wrapper(runtime, hook) : address;
  }
  return address;
}

}  // namespace

AnyFunction wrap_driver_function(AnyFunction address) noexcept {
  const std::size_t row = row_at(address);
  return row == kHookCount ? address : routed_wrapper(static_cast<Hook>(row));
}

}  // namespace kshim::shim

using namespace kshim::shim;

// Does not use dl_iterate_phdr: ThreadSanitizer replaces it and looks the real one up with dlsym while it
// starts.
void kshim_find_real_lookups(void) noexcept {
  on_new_stack([] {
    NextFunction next[] = {{"dlvsym"}, {"dlsym"}};
    find_after_shim(next);
    kshim_real_dlvsym = next[0].address;
    kshim_real_dlsym = next[1].address;
  });
}

namespace {

/// Whether there is a definition behind the shim. The next dlsym may be another tool's, and answer NULL where
/// a thread asks a second time (HAMi-core).
bool has_next(const char* name, const char* version, std::size_t row) noexcept {
  return look_up_plainly(RTLD_NEXT, name, version) != nullptr ||
         (kHooks[row].layer == Layer::driver && has_next_at_start(static_cast<Hook>(row)));
}

/// Whether dlsym(RTLD_NEXT) sets an error for dlerror() where it fails. glibc before 2.24 sets none (its bug
/// 19509); 2.24 gave quick_exit a new version.
bool next_sets_error() noexcept {
  enum : std::uint8_t { kUnknown, kNo, kYes };
  static std::atomic<std::uint8_t> known{kUnknown};
  if (known.load(std::memory_order_relaxed) == kUnknown) {
    const bool is_new = kshim_real_dlvsym == nullptr ||  // musl
                        look_up_plainly(RTLD_NEXT, "quick_exit", "GLIBC_2.24") != nullptr;
    known.store(is_new ? kYes : kNo, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed) == kYes;
}

/// Our export would be libc's answer to RTLD_NEXT: the caller comes before the shim in link order (the
/// program, an earlier preload), and nothing between them has such a definition.
[[gnu::noinline]] bool shim_is_next_of(const void* asking, const char* name, const char* version) noexcept {
  const std::uint64_t caller = find_object_in_use(asking).mapping_id;
  const std::string_view wanted = version == nullptr ? std::string_view() : version;
  bool after_caller = false;
  bool broken = false;
  MapNode node;
  for (bool more = read_node(link_map_head(), node); more; more = next_node(node, broken)) {
    const LoadedObject object = find_loaded_object(reinterpret_cast<const void*>(node.map.l_ld));
    if (is_shim(object.elf.base())) return after_caller;
    if (after_caller && object.elf.find_symbol(name, gnu_hash(name), wanted) != nullptr) return false;
    after_caller = after_caller || (caller != 0 && object.mapping_id == caller);
  }
  return false;
}

/// Whether any loaded object but the shim defines it.
bool is_defined_somewhere(std::size_t row) noexcept {
  const auto hook = static_cast<Hook>(row);
  if (is_compiler(kHooks[row])) return has_compiler(hook);
  bool defined = false;
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const auto runtime = static_cast<Runtime>(i);
    defined = defined || find_runtime(runtime, hook) != nullptr;
  }
  return defined;
}

// Not inlined: a LoadedObject has 600 bytes, which are not to be on the host's stack while the real look-up
// runs. Compilers differ in what they inline by themselves.

[[gnu::noinline]] bool is_driver_itself(const void* caller) noexcept {
  return is_driver_file(find_object_in_use(caller));
}

/// Whether libc may find it for a library that was opened later, among what that was opened with.
[[gnu::noinline]] bool is_there_for(const void* asking, const char* name, const char* version,
                                    std::size_t row) noexcept {
  const LoadedObject caller = find_object_in_use(asking);
  if (!caller || caller.at_start) return false;
  if (caller.elf.find_symbol(name, gnu_hash(name)) != nullptr) return true;
  if (kHooks[row].layer != Layer::driver) return is_defined_somewhere(row);
  if (current_driver() == 0) find_driver();
  const LoadedObject driver = driver_object();
  // The driver has no versions: a look-up with one cannot mean it.
  return version == nullptr && driver &&
         (caller.elf.needs(driver.soname) || caller.elf.needs(base_name(driver.path)));
}

/// The preload comes first in the global scope, so libc's answer is our export even in a process without
/// CUDA. A probe for CUDA must get the same answer with and without the shim.
bool is_there_without_shim(void* handle, const char* name, const void* asking, const char* version,
                           std::size_t row) noexcept {
  if (handle == RTLD_NEXT && !shim_is_next_of(asking, name, version)) return true;  // libc will not find ours
  if (handle == RTLD_DEFAULT && !is_shim(look_up_plainly(RTLD_DEFAULT, name, version))) return true;
  // Asked from here, RTLD_NEXT means "after the shim". If it fails, dlerror() is about this name.
  return has_next(name, version, row) || (handle == RTLD_DEFAULT && is_there_for(asking, name, version, row));
}

/// What libc finds of a runtime for a handle that names no library; nullptr: something that only libc can
/// tell. The shim's own definitions have versions, which such a look-up passes over.
[[gnu::noinline]] AnyFunction find_unnamed(void* handle, const char* name, const char* version,
                                           const void* asking, std::size_t row) noexcept {
  if (!options().enabled || kHooks[row].layer != Layer::runtime) return nullptr;
  if (handle == RTLD_NEXT && !shim_is_next_of(asking, name, version)) return nullptr;
  const AnyFunction found = look_up_plainly(handle, name, version);
  return is_shim(found) || !find_loaded_object(found) ? nullptr : found;
}

/// A driver function by its name (cuInit, not cublasCreate), hooked or not.
bool is_driver_function(const char* name) noexcept {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

bool is_get_proc_address(std::size_t row) noexcept {
  return row == index_of(Hook::cuGetProcAddress) || row == index_of(Hook::cuGetProcAddress_v2);
}

/// If the driver has no cuGetProcAddress_v2 (before CUDA 12), the runtime of CUDA 13 returns 35 without
/// asking the driver for its version. The shim asks instead, for `kshim run`.
void report_old_driver_version(void* handle) noexcept {
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
  const std::size_t row = find_hook(name);
  if (row == kHookCount && !is_driver_function(name)) return kNotOurs;
  const ErrnoKeeper keeper;
  if (is_driver_itself(caller)) return kNotOurs;
  unshadow_variables(caller, name);
  if (row == kHookCount) return kNotOurs;
  const bool sets_error = next_sets_error();  // asked first: a look-up that succeeds clears the error
  const auto none = [&]() noexcept -> LookupAnswer {
    if (!sets_error && handle != RTLD_NEXT) look_up_plainly(handle, name, "none");
    return {nullptr, 1};
  };
  if (names_none) {
    if (const AnyFunction found = find_unnamed(handle, name, version, caller, row); found != nullptr)
      return {wrap_dlsym_result(found, row), 1};
    // The meaning of RTLD_NEXT depends on the caller, which only a jump to libc preserves. The look-up before
    // it has failed where there is nothing: its NULL and dlerror() are what the caller expects.
    return is_there_without_shim(handle, name, caller, version, row) ? kNotOurs : none();
  }
  void* address = look_up_plainly(handle, name, version);
  // The handle is the program's (dlopen(NULL), ctypes.CDLL(None)): it searches the global scope, where the
  // shim is.
  if (is_shim(address) && !has_next(name, version, row)) return none();
  if (!options().enabled) return {address, 1};
  if (address == nullptr && is_get_proc_address(row)) {
    report_old_driver_version(handle);
    address = look_up_plainly(handle, name, version);  // dlerror() is about this name
  }
  if (address != nullptr && row == index_of(Hook::cuLibraryLoadData)) note_loads_libraries(caller);
  if (address == nullptr || is_shim(address)) return {address, 1};
  return {wrap_dlsym_result(address, row), 1};
}

namespace kshim::shim {

namespace {

// Newest CUDA whose cuGetProcAddress versions are known here: a later version asked for may mean another
// signature.
constexpr int kNewestKnownCuda = 13030;
constexpr std::uint64_t kPerThreadStream = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

/// Drivers are expected to answer with the addresses of their exports. Should one hand out private ones, a
/// name that never had a second signature still says what is meant: the plain row, or the _ptsz one by flag.
AnyFunction wrap_private_function(const char* symbol, AnyFunction address, int version,
                                  std::uint64_t flags) noexcept {
  const LoadedObject owner = find_loaded_object(address);
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

void wrap_get_proc_address_result(const char* symbol, void** pfn, int version, std::uint64_t flags,
                                  const void* caller) noexcept {
  if (!options().enabled || symbol == nullptr || pfn == nullptr || *pfn == nullptr || in_driver(caller))
    return;
  const ErrnoKeeper keeper;
  AnyFunction routed = wrap_driver_function(*pfn);
  if (routed == *pfn && find_hook(symbol) != kHookCount)
    routed = wrap_private_function(symbol, *pfn, version, flags);
  if (routed == routed_wrapper(Hook::cuLibraryLoadData)) note_loads_libraries(caller);
  *pfn = routed;
}

}  // namespace kshim::shim

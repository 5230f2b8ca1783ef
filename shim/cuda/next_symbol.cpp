// SPDX-License-Identifier: Apache-2.0
#include "cuda/next_symbol.h"

#include <cstring>

#include "guest/text_buffer.h"
#include "guest/timed_lock.h"

namespace kshim::shim {

std::atomic<AnyFunction> g_driver_next[kHookCount];
std::atomic<AnyFunction> g_driver_own[kHookCount];
std::atomic<AnyFunction> g_driver_address[kHookCount];
std::atomic<AnyFunction> g_runtime_real[kRuntimeCount][kHookCount];

namespace {

// Rows by the address of libcuda's function, row + 1; open addressing, never emptied. An entry counts only
// while g_driver_address says the same, so what a driver leaves behind that was unloaded is in nobody's way.
constexpr unsigned kAddressBits = 11;
constexpr std::size_t kAddressSlots = 1U << kAddressBits;
constexpr std::size_t kAddressProbes = 32;
std::atomic<std::uint16_t> g_rows_by_address[kAddressSlots];
std::atomic<bool> g_address_table_full{false};

std::size_t home_of(AnyFunction address) noexcept {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15ULL) >>
                                  (64U - kAddressBits));
}

PatientLock g_lock;
ObjectView g_driver;  // under g_lock
std::atomic<std::uintptr_t> g_driver_low{0};
std::atomic<std::uintptr_t> g_driver_high{0};
std::atomic<std::uint64_t> g_driver_unloads{0};  ///< unload_count() when it was found

bool is_libcuda(std::string_view path) noexcept { return base_name(path).starts_with("libcuda.so"); }

/// Whether an object defines the CUDA runtime as a whole: a library that exports its static copy. A reference
/// that carries a version belongs to libcudart.so.N; such a copy is nobody's next definition.
bool carries_runtime(const LoadedElf& elf) noexcept {
  constexpr std::string_view kName = "cudaRuntimeGetVersion";
  return elf.find_symbol(kName, gnu_hash(kName)) != nullptr;
}

struct Search {
  Layer layer;
  std::size_t runtime;
  bool after_shim = false;
  AnyFunction found[kHookCount] = {};
};

bool search_one(void* context, const ObjectView& object) {
  auto& search = *static_cast<Search*>(context);
  if (is_shim(object.elf.high() - 1)) {
    search.after_shim = true;
    return true;
  }
  if (!search.after_shim) return true;
  const bool driver = search.layer == Layer::driver;
  const std::string_view soname = driver ? std::string_view() : kRuntimeSonames[search.runtime];
  const bool target =
      driver ? is_libcuda(object.path) : is_runtime(object.elf, static_cast<Runtime>(search.runtime));
  if (!target && !driver && (object.elf.defines_versions() || carries_runtime(object.elf))) return true;
  for (std::size_t i = 0; i < kHookCount; ++i) {
    if (kHooks[i].layer != search.layer || search.found[i] != nullptr) continue;
    void* symbol =
        object.elf.find_symbol(kHooks[i].name, kHooks[i].gnu_hash, target ? soname : std::string_view());
    search.found[i] = symbol;
  }
  return true;
}

/// Takes no lock: a program that calls must get its function, and two threads that fill write the same.
void fill_driver(const ObjectView& driver) noexcept {
  Search search{Layer::driver, 0};
  each_mapped(search_one, &search);
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (kHooks[i].layer == Layer::driver) {
      const auto hook = static_cast<Hook>(i);
      g_driver_next[i].store(wrap_for_counting(hook, true, search.found[i]), std::memory_order_release);
      set_driver_own(hook, driver.elf.find_symbol(kHooks[i].name, kHooks[i].gnu_hash));
    }
}

void remember_driver(const ObjectView& object) noexcept {
  const LockGuard guard(g_lock);
  if (!guard) return;
  g_driver = object;
  g_driver_high.store(object.elf.high(), std::memory_order_relaxed);
  // No object: 0, not the lowest address that a false one has.
  g_driver_low.store(object ? object.elf.low() : 0, std::memory_order_release);
}

bool find_libcuda(void* context, const ObjectView& object) {
  if (!is_libcuda(object.path)) return true;
  auto& found = *static_cast<ObjectView*>(context);
  found = object;
  found.path = {};
  return false;
}

/// The mapped libcuda, or a false object.
ObjectView driver_object() noexcept {
  ObjectView found;
  each_mapped(find_libcuda, &found);
  return found;
}

/// unload_count() when the table of a runtime was filled.
std::atomic<std::uint64_t> g_runtime_unloads[kRuntimeCount];

}  // namespace

void set_driver_own(Hook hook, AnyFunction address) noexcept {
  g_driver_own[index_of(hook)].store(wrap_for_counting(hook, false, address), std::memory_order_release);
  g_driver_address[index_of(hook)].store(address, std::memory_order_release);
  if (address == nullptr) return;
  const auto entry = static_cast<std::uint16_t>(index_of(hook) + 1);
  for (std::size_t i = 0; i < kAddressProbes; ++i) {
    auto& slot = g_rows_by_address[(home_of(address) + i) % kAddressSlots];
    std::uint16_t known = slot.load(std::memory_order_acquire);
    if (known == 0 && slot.compare_exchange_strong(known, entry, std::memory_order_acq_rel)) return;
    // Two names for one function: the first row stands for both.
    if (g_driver_address[known - 1U].load(std::memory_order_acquire) == address) return;
  }
  g_address_table_full.store(true, std::memory_order_release);
}

std::size_t row_at(AnyFunction address) noexcept {
  for (std::size_t i = 0; i < kAddressProbes; ++i) {
    const std::uint16_t known =
        g_rows_by_address[(home_of(address) + i) % kAddressSlots].load(std::memory_order_acquire);
    if (known == 0) break;
    if (g_driver_address[known - 1U].load(std::memory_order_acquire) == address) return known - 1U;
  }
  if (g_address_table_full.load(std::memory_order_acquire))
    for (std::size_t row = 0; row < kHookCount; ++row)
      if (kHooks[row].layer == Layer::driver &&
          g_driver_address[row].load(std::memory_order_acquire) == address)
        return row;
  return kHookCount;
}

std::uintptr_t driver_base() noexcept {
  recheck_driver();
  return g_driver_low.load(std::memory_order_acquire);
}

std::string_view driver_path() noexcept {
  recheck_driver();
  return object_at(g_driver_low.load(std::memory_order_acquire)).path;
}

void adopt_driver(const ObjectView& object) noexcept {
  if (g_driver_low.load(std::memory_order_acquire) == object.elf.low() &&
      g_driver_high.load(std::memory_order_relaxed) == object.elf.high())
    return;
  fill_driver(object);
  remember_driver(object);
}

void find_driver() noexcept {
  g_driver_unloads.store(unload_count(), std::memory_order_relaxed);
  const ObjectView object = driver_object();  // a false one where there is none any more
  fill_driver(object);
  remember_driver(object);
}

void recheck_driver() noexcept {
  if (g_driver_low.load(std::memory_order_acquire) != 0 &&
      g_driver_unloads.load(std::memory_order_relaxed) != unload_count())
    find_driver();
}

AnyFunction find_runtime(Runtime runtime, Hook hook) noexcept {
  Search search{Layer::runtime, static_cast<std::size_t>(runtime)};
  g_runtime_unloads[search.runtime].store(unload_count(), std::memory_order_relaxed);
  each_mapped(search_one, &search);
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (kHooks[i].layer == Layer::runtime)
      g_runtime_real[search.runtime][i].store(search.found[i], std::memory_order_release);
  return runtime_real(runtime, hook);
}

void recheck_runtime(Runtime runtime) noexcept {
  const std::size_t index = static_cast<std::size_t>(runtime);
  if (g_runtime_unloads[index].load(std::memory_order_relaxed) != unload_count())
    find_runtime(runtime, Hook::__cudaRegisterFatBinary);
}

AnyFunction driver_function(const char* name) noexcept {
  recheck_driver();
  if (g_driver_low.load(std::memory_order_acquire) == 0) return nullptr;
  const LockGuard guard(g_lock);
  return guard ? g_driver.elf.find_symbol(name, gnu_hash(name)) : nullptr;
}

bool in_driver(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value >= g_driver_low.load(std::memory_order_relaxed) &&
         value < g_driver_high.load(std::memory_order_relaxed);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver_table.h"

#include <cstring>

#include "cuda/cuda_libraries.h"
#include "cuda/real_functions.h"
#include "guest/options.h"
#include "guest/safe_memory.h"
#include "guest/text_buffer.h"
#include "process/loaded_objects.h"
#include "process/page_protection.h"
#include "report/stderr_log.h"

namespace kshim::shim {

std::atomic<AnyFunction> g_table_real[kTableRows];

namespace {

using Word = std::uintptr_t;

constexpr std::size_t kSlots[] = {
#define KSHIM_SLOT(name, reported, slot, first, second) slot,
#include "cuda/slots.def"
#undef KSHIM_SLOT
};
constexpr std::size_t kNeeded = 9;  ///< words: the size, and all up to the last slot of slots.def

#define KSHIM_SLOT(name, reported, slot, first, second) static_assert(slot != 0 && slot < kNeeded);
#include "cuda/slots.def"
#undef KSHIM_SLOT

constexpr unsigned char kInterface[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                          0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};

// Changed by watch_load_table() alone.
std::uintptr_t g_table = 0;  ///< the table with our wrappers in it
bool g_given_up = false;

std::atomic<std::uint32_t> g_unwatched{0};  ///< identity of a runtime's file

/// Files that load by cuLibraryLoadData: a bit for each identity.
constexpr std::uint32_t kBits = 64;
std::atomic<std::uint64_t> g_loads_libraries[kMaxIdentities / kBits];
constexpr std::uint64_t bit_of(std::uint32_t identity) noexcept {
  return std::uint64_t{1} << identity % kBits;
}
bool loads_libraries(std::uint32_t identity) noexcept {
  return (g_loads_libraries[identity / kBits].load(std::memory_order_relaxed) & bit_of(identity)) != 0;
}

/// The table of a driver that was unloaded no longer exists; something else may be mapped there.
bool is_still_watched(std::uintptr_t table) noexcept {
  Word words[kNeeded];
  if (table == 0 || !is_libcuda(find_loaded_object(table)) || !read_memory(table, words, sizeof words))
    return false;
  return is_shim(words[kSlots[0]]);
}

/// Puts the wrappers into the table. Empty when they are there, else why nothing was changed.
std::string_view watch_table(std::uintptr_t table, const AnyFunction* wrappers) noexcept {
  const LoadedObject driver = find_loaded_object(table);
  if (!driver || !is_libcuda(driver) || !in_driver(reinterpret_cast<const void*>(table)))
    return "it lies outside of the driver";
  Word words[kNeeded];
  const std::size_t room = driver.elf.bytes_from(table).size();
  if (table % sizeof(Word) != 0 || room < sizeof words || !read_memory(table, words, sizeof words) ||
      words[0] < sizeof words || words[0] > room)
    return "it has another shape";
  std::size_t present = 0;
  for (const std::size_t slot : kSlots) {
    if (is_shim(words[slot]))
      ++present;
    else if (!driver.elf.is_code(words[slot]))
      return "a slot leads out of the driver's code";
  }
  if (present == kTableRows) return {};
  // The wrappers call one driver.
  if (g_table != table && is_still_watched(g_table)) return "it is a second driver's";
  const ScopedWritable writable(driver.elf, table, table + sizeof words);
  if (!writable) return writable.refusal();
  auto* slots = reinterpret_cast<AnyFunction*>(table);
  for (std::size_t row = 0; row < kTableRows; ++row) {
    if (is_shim(words[kSlots[row]])) continue;
    g_table_real[row].store(slots[kSlots[row]], std::memory_order_release);
    // One store: a thread that reads the slot at this moment gets the driver's function or ours.
    std::atomic_ref<AnyFunction>(slots[kSlots[row]]).store(wrappers[row], std::memory_order_release);
  }
  g_table = table;
  return {};
}

}  // namespace

void watch_load_table(const Locked& /*locked*/, std::uintptr_t table, const void* caller,
                      const AnyFunction* wrappers) noexcept {
  const LoadedObject asker = find_object_in_use(caller);
  if (!asker || is_driver_file(asker) || loads_libraries(asker.identity)) return;
  if (!options().patch_table) {
    if (g_unwatched.exchange(asker.identity) == 0)
      log_line(LogLevel::info,
               "loads by this CUDA runtime before 12 are not recorded; KSHIM_PATCH_TABLE=1 records them");
    return;
  }
  if (g_given_up) return;
  const std::string_view refusal = watch_table(table, wrappers);
  if (refusal.empty()) return;
  g_given_up = true;
  g_unwatched.store(asker.identity);
  Text<256> line;
  line
      << "loads by CUDA runtimes before 12 are not recorded: the driver's table of functions was left alone, "
      << refusal;
  log_line(LogLevel::info, line.view());
}

bool is_load_table(const abi::Uuid& id) noexcept {
  return std::memcmp(id.bytes, kInterface, sizeof kInterface) == 0;
}

std::uint32_t unwatched_runtime() noexcept { return g_unwatched.load(std::memory_order_relaxed); }

void note_loads_libraries(const void* caller) noexcept {
  const std::uint32_t identity = find_object_in_use(caller).identity;
  if (identity != 0)
    g_loads_libraries[identity / kBits].fetch_or(bit_of(identity), std::memory_order_relaxed);
}

}  // namespace kshim::shim

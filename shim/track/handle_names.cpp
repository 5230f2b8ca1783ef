// SPDX-License-Identifier: Apache-2.0
#include "track/handle_names.h"

#include <atomic>
#include <cstring>

#include "guest/syscalls.h"
#include "kshim/base/bytes.h"
#include "kshim/base/hash.h"

namespace kshim::shim {
namespace {

constexpr unsigned kSlotBits = 16;
constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;
constexpr std::size_t kProbes = 32;
constexpr std::uint64_t kRing = std::uint64_t{3} << 20U;

/// A name's place: how many bytes were written to the ring before it, and its length. 0 = no name.
constexpr unsigned kLengthBits = 15;
static_assert(HandleInfo::kMaxNameLength < (1U << kLengthBits));
constexpr std::uint64_t begin_of(std::uint64_t place) noexcept { return place >> kLengthBits; }
constexpr std::size_t length_of(std::uint64_t place) noexcept { return place & ((1U << kLengthBits) - 1); }

struct Slot {
  std::atomic<std::uintptr_t> handle;
  std::atomic<std::uint64_t> place;
  std::atomic<std::uint64_t> module;
  std::atomic<std::uintptr_t> root;  ///< the handle that the load gave; 0 = not known
  /// A hash of the above and of the name itself. Threads may write the same slot, or the same part of the
  /// ring, at the same time: a mixture does not match the hash and is ignored.
  std::atomic<std::uint64_t> check;
};
struct Table {
  Slot slots[kSlots];
  std::atomic<std::uint64_t> written;  ///< bytes, ever
  char ring[kRing];
};
std::atomic<Table*> g_table{nullptr};

Table* open_table() noexcept {
  Table* table = g_table.load(std::memory_order_acquire);
  if (table != nullptr) return table;
  void* fresh = raw::map_memory(sizeof(Table), MAP_NORESERVE);
  if (fresh == nullptr) return nullptr;
  if (g_table.compare_exchange_strong(table, static_cast<Table*>(fresh), std::memory_order_acq_rel))
    return static_cast<Table*>(fresh);
  raw::unmap_memory(fresh, sizeof(Table));
  return table;
}

std::uint64_t check_of(std::uintptr_t handle, std::uint64_t place, std::uint64_t module, std::uintptr_t root,
                       std::string_view name) noexcept {
  // One whole step of content_hash(): each load and unload takes several of these.
  const std::uint64_t parts[8] = {handle, place, module, root,
                                  name.empty() ? 0 : content_hash(bytes_of(name))};
  return content_hash(std::as_bytes(std::span(parts)));
}

/// The name at a place in the ring; no data() if there is none, or if it was overwritten.
std::string_view name_at(const Table& table, std::uint64_t place) noexcept {
  if (place == 0) return {};
  const std::uint64_t begin = begin_of(place);
  if (table.written.load(std::memory_order_acquire) - begin > kRing) return {};
  return {table.ring + begin % kRing, length_of(place)};
}

/// 0 for an empty name and one that is too long.
std::uint64_t write_name(Table& table, std::string_view name) noexcept {
  if (name.empty() || name.size() > HandleInfo::kMaxNameLength) return 0;
  for (;;) {
    const std::uint64_t begin = table.written.fetch_add(name.size(), std::memory_order_acq_rel);
    if (begin % kRing + name.size() > kRing) continue;  // it would not lie in one piece
    std::memcpy(table.ring + begin % kRing, name.data(), name.size());
    return begin << kLengthBits | name.size();
  }
}

std::size_t home_of(std::uintptr_t handle) noexcept {
  return static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> (64U - kSlotBits));
}

template <class Any>
auto find_slot(Any& table, std::uintptr_t handle) noexcept -> decltype(&table.slots[0]) {
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; i < kProbes; ++i) {
    auto& slot = table.slots[(home + i) % kSlots];
    const std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == handle) return &slot;
    if (holder == 0) return nullptr;
  }
  return nullptr;
}

/// A free slot, or that of another handle, which is forgotten.
Slot& acquire_slot(Table& table, std::uintptr_t handle) noexcept {
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Slot& slot = table.slots[(home + i) % kSlots];
    std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == 0 && slot.handle.compare_exchange_strong(holder, handle, std::memory_order_acq_rel))
      return slot;
    if (holder == handle) return slot;
  }
  Slot& slot = table.slots[(home + table.written.load(std::memory_order_relaxed) % kProbes) % kSlots];
  slot.handle.store(handle, std::memory_order_release);
  return slot;
}

struct Meaning {
  std::uint64_t place = 0;
  std::uint64_t module = 0;
  std::uintptr_t root = 0;
  std::string_view name;  ///< in the ring
};

/// False if the slot is empty, or was being written.
bool read_slot(const Table& table, const Slot& slot, std::uintptr_t handle, Meaning& out) noexcept {
  const std::uint64_t check = slot.check.load(std::memory_order_acquire);
  out.place = slot.place.load(std::memory_order_relaxed);
  out.module = slot.module.load(std::memory_order_relaxed);
  out.root = slot.root.load(std::memory_order_relaxed);
  out.name = name_at(table, out.place);
  return check == check_of(handle, out.place, out.module, out.root, out.name);
}

void write_slot(Slot& slot, std::uintptr_t handle, const Meaning& meaning) noexcept {
  slot.place.store(meaning.place, std::memory_order_relaxed);
  slot.module.store(meaning.module, std::memory_order_relaxed);
  slot.root.store(meaning.root, std::memory_order_relaxed);
  slot.check.store(check_of(handle, meaning.place, meaning.module, meaning.root, meaning.name),
                   std::memory_order_release);
}

bool find_slot_meaning(const Table& table, std::uintptr_t handle, Meaning& out) noexcept {
  const Slot* const slot = find_slot(table, handle);
  return slot != nullptr && read_slot(table, *slot, handle, out);
}

/// False also for what was found in a load that was unloaded: its handle has another meaning now, or none.
/// (If there was no room for it, that is not known.)
bool find_meaning(std::uintptr_t handle, Meaning& out) noexcept {
  const Table* const table = g_table.load(std::memory_order_acquire);
  if (table == nullptr || handle == 0 || !find_slot_meaning(*table, handle, out)) return false;
  if (out.root == 0 || out.root == handle) return true;
  Meaning load;
  return !find_slot_meaning(*table, out.root, load) || load.module == out.module;
}

bool remember(std::uintptr_t handle, std::string_view name, std::uint64_t module,
              std::uintptr_t root) noexcept {
  Table* const table = handle == 0 ? nullptr : open_table();
  if (table == nullptr) return false;
  Slot& slot = acquire_slot(*table, handle);
  Meaning before;
  const bool known = read_slot(*table, slot, handle, before);
  if (known && before.name == name && before.module == module && before.root == root) return false;
  Meaning now{0, module, root, {}};
  now.place = known && before.name == name ? before.place : write_name(*table, name);
  if (now.place != 0) now.name = name;
  write_slot(slot, handle, now);
  return known;
}

}  // namespace

bool remember_load(std::uintptr_t handle, std::uint64_t module) noexcept {
  return remember(handle, {}, module, handle);
}

bool remember_name(std::uintptr_t handle, std::string_view name, std::uintptr_t source) noexcept {
  Meaning in;
  return find_meaning(source, in) ? remember(handle, name, in.module, in.root) : remember(handle, name, 0, 0);
}

bool remember_alias(std::uintptr_t handle, std::uintptr_t source) noexcept {
  Meaning meaning;
  if (handle == 0 || !find_meaning(source, meaning)) return remember(handle, {}, 0, 0);
  Table& table = *open_table();
  Slot& slot = acquire_slot(table, handle);
  Meaning before;
  const bool known = read_slot(table, slot, handle, before);
  if (known && before.place == meaning.place && before.module == meaning.module &&
      before.root == meaning.root)
    return false;
  if (meaning.name.empty()) meaning.place = 0;
  write_slot(slot, handle, meaning);
  return known;
}

void forget_load(std::uintptr_t handle, std::uint64_t module) noexcept {
  Table* const table = g_table.load(std::memory_order_acquire);
  Slot* const slot = table == nullptr || handle == 0 || module == 0 ? nullptr : find_slot(*table, handle);
  Meaning now;
  if (slot != nullptr && read_slot(*table, *slot, handle, now) && now.module == module)
    write_slot(*slot, handle, {});
}

bool handle_has_name(std::uintptr_t handle, std::string_view name) noexcept {
  Meaning meaning;
  return find_meaning(handle, meaning) && meaning.name == name;
}

std::uint64_t module_of_handle(std::uintptr_t handle) noexcept {
  Meaning meaning;
  return find_meaning(handle, meaning) ? meaning.module : 0;
}

void recall_handle(std::uintptr_t handle, HandleInfo& out) noexcept {
  out.module = 0;
  out.name_size = 0;
  Meaning meaning;
  if (!find_meaning(handle, meaning)) return;
  out.module = meaning.module;
  // Copied first and verified afterwards: the ring may be overwritten meanwhile.
  if (!meaning.name.empty()) std::memcpy(out.name_text, meaning.name.data(), meaning.name.size());
  const std::string_view copy(out.name_text, meaning.name.size());
  Table& table = *g_table.load(std::memory_order_acquire);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (!copy.empty() && name_at(table, meaning.place).data() != nullptr) out.name_size = copy.size();
}

}  // namespace kshim::shim

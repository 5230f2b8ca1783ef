// SPDX-License-Identifier: Apache-2.0
#include "track/handle_names.h"

#include <atomic>
#include <cstring>

#include "guest/syscalls.h"

namespace kshim::shim {
namespace {

constexpr std::size_t kProbes = 32;

std::atomic<std::uintptr_t> g_unloaded[64];
std::atomic<bool> g_any_unloaded{false};

}  // namespace

bool stage_unload(std::uintptr_t handle) noexcept {
  for (auto& place : g_unloaded) {
    std::uintptr_t free = 0;
    if (!place.compare_exchange_strong(free, handle)) continue;
    g_any_unloaded.store(true);
    return true;
  }
  return false;
}

void HandleNames::update() noexcept {
  if (!g_any_unloaded.load() || !g_any_unloaded.exchange(false)) return;
  for (auto& place : g_unloaded) {
    if (place.load() == 0) continue;
    const std::uintptr_t handle = place.exchange(0);
    if (find(handle) != nullptr) acquire(handle) = {handle, 0, 0, 0, 0};
  }
}

std::size_t HandleNames::home_of(std::uintptr_t handle) noexcept {
  return static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> (64U - kSlotBits));
}

/// False without memory.
bool HandleNames::open() noexcept {
  if (table_ == nullptr) table_ = static_cast<Table*>(raw::map_memory(sizeof(Table), MAP_NORESERVE));
  return table_ != nullptr;
}

const HandleNames::Slot* HandleNames::find(std::uintptr_t handle) const noexcept {
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; table_ != nullptr && i < kProbes; ++i) {
    const Slot& slot = table_->slots[(home + i) % kSlots];
    if (slot.handle == handle) return &slot;
    if (slot.handle == 0) return nullptr;
  }
  return nullptr;
}

/// The handle's slot, a free one, or that of another handle, which is forgotten.
HandleNames::Slot& HandleNames::acquire(std::uintptr_t handle) noexcept {
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Slot& slot = table_->slots[(home + i) % kSlots];
    if (slot.handle == 0 || slot.handle == handle) return slot;
  }
  Slot& slot = table_->slots[(home + table_->written % kProbes) % kSlots];
  slot = {};
  return slot;
}

/// nullptr also for what was found in a load that was unloaded: its handle has another meaning now, or none.
/// (If there was no room for it, that is not known.)
const HandleNames::Slot* HandleNames::find_meaning(std::uintptr_t handle) const noexcept {
  const Slot* const slot = handle == 0 ? nullptr : find(handle);
  if (slot == nullptr || slot->root == 0 || slot->root == handle) return slot;
  const Slot* const load = find(slot->root);
  return load == nullptr || load->module == slot->module ? slot : nullptr;
}

/// Empty if there is none, or if it was overwritten.
std::string_view HandleNames::name_of(const Slot& slot) const noexcept {
  if (slot.length == 0 || table_->written - slot.begin > kRing) return {};
  return {table_->ring + slot.begin % kRing, slot.length};
}

bool HandleNames::remember(std::uintptr_t handle, std::string_view name, std::uint64_t module,
                           std::uintptr_t root) noexcept {
  if (handle == 0 || !open()) return false;
  if (name.size() > HandleInfo::kMaxNameLength) name = {};
  Slot& slot = acquire(handle);
  const bool known = slot.handle == handle;
  const bool same_name = known && name_of(slot) == name;
  if (same_name && slot.module == module && slot.root == root) return false;
  if (!same_name && !name.empty()) {
    if (table_->written % kRing + name.size() > kRing)
      table_->written += kRing - table_->written % kRing;  // in one piece
    // The name may be that of another handle, in the ring.
    std::memmove(table_->ring + table_->written % kRing, name.data(), name.size());
    slot.begin = table_->written;
    table_->written += name.size();
  }
  slot = {handle, slot.begin, name.size(), module, root};
  return known;
}

bool HandleNames::remember_load(std::uintptr_t handle, std::uint64_t module) noexcept {
  update();
  return remember(handle, {}, module, handle);
}

bool HandleNames::remember_name(std::uintptr_t handle, std::string_view name,
                                std::uintptr_t source) noexcept {
  update();
  const Slot* const in = find_meaning(source);
  return in != nullptr ? remember(handle, name, in->module, in->root) : remember(handle, name, 0, 0);
}

bool HandleNames::remember_alias(std::uintptr_t handle, std::uintptr_t source) noexcept {
  update();
  const Slot* const meaning = find_meaning(source);
  if (handle == 0 || meaning == nullptr) return remember(handle, {}, 0, 0);
  Slot alias = *meaning;
  alias.handle = handle;
  Slot& slot = acquire(handle);
  const bool known = slot.handle == handle;
  if (known && name_of(slot) == name_of(alias) && slot.module == alias.module && slot.root == alias.root)
    return false;
  slot = alias;
  return known;
}

HandleInfo HandleNames::recall(std::uintptr_t handle) noexcept {
  update();
  const Slot* const slot = find_meaning(handle);
  return slot == nullptr ? HandleInfo() : HandleInfo{slot->module, name_of(*slot)};
}

}  // namespace kshim::shim

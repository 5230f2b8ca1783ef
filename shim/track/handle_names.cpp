// SPDX-License-Identifier: Apache-2.0
#include "track/handle_names.h"

#include <atomic>
#include <cstring>

#include "guest/text_buffer.h"
#include "track/coverage.h"

namespace kshim::shim {
namespace {

// Room for what a large process looks up (cuDNN: 17,000 kernels); untouched pages cost nothing.
constexpr std::size_t kSlots = 1U << 17U;
constexpr std::size_t kProbes = 32;

struct Slot {
  std::atomic<std::uintptr_t> handle;
  std::atomic<const char*> name;
  std::atomic<std::uint64_t> module;
};
Slot g_slots[kSlots];

std::size_t home_of(std::uintptr_t handle) noexcept {
  return static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> (64U - 17U));
}

}  // namespace

void remember_handle(std::uintptr_t handle, std::string_view name, std::uint64_t module) noexcept {
  if (handle == 0) return;
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; i < kProbes; ++i) {
    Slot& slot = g_slots[(home + i) % kSlots];
    std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == 0 && slot.handle.compare_exchange_strong(holder, handle, std::memory_order_acq_rel))
      holder = handle;
    if (holder != handle) continue;
    const char* known = slot.name.load(std::memory_order_acquire);
    const bool other = known == nullptr ? !name.empty() : name != known;
    if (other || module != slot.module.load(std::memory_order_relaxed)) forget_launches(handle);
    if (other) slot.name.store(name.empty() ? nullptr : keep_text(name).data(), std::memory_order_release);
    slot.module.store(module, std::memory_order_release);
    return;
  }
}

HandleFacts recall_handle(std::uintptr_t handle) noexcept {
  if (handle == 0) return {};
  const std::size_t home = home_of(handle);
  for (std::size_t i = 0; i < kProbes; ++i) {
    const Slot& slot = g_slots[(home + i) % kSlots];
    const std::uintptr_t holder = slot.handle.load(std::memory_order_acquire);
    if (holder == 0) return {};
    if (holder != handle) continue;
    const char* name = slot.name.load(std::memory_order_acquire);
    return {name == nullptr ? std::string_view() : std::string_view(name),
            slot.module.load(std::memory_order_acquire)};
  }
  return {};
}

}  // namespace kshim::shim

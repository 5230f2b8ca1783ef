// SPDX-License-Identifier: Apache-2.0
#include "cuda/shadowed_variables.h"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <optional>

#include "guest/scratch_stack.h"
#include "guest/timed_lock.h"
#include "process/link_map.h"
#include "process/page_protection.h"
#include "process/scattered_read.h"

namespace kshim::shim {
namespace {

/// One thread at a time: two that give a page its protection back would meet.
TimedLock g_lock;
/// Libraries that were looked at (LoadedObject::load), by that number modulo the size.
std::atomic<std::uint64_t> g_seen[64];

bool is_new(std::uint64_t load) noexcept {
  return g_seen[load % std::size(g_seen)].exchange(load, std::memory_order_relaxed) != load;
}

/// Writes to pages that are read-only after relocation.
class Slots {
 public:
  void set(std::uintptr_t slot, std::uintptr_t value) noexcept {
    constexpr std::uintptr_t kPage = 4096;
    if (slot % sizeof value != 0) return;
    if (!page_ || slot / kPage != number_) {
      page_.reset();
      number_ = slot / kPage;
      page_.emplace(slot, slot + sizeof value);
    }
    if (*page_) std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(slot)).store(value);
  }

 private:
  std::uintptr_t number_ = 0;
  std::optional<ScopedWritable> page_;
};

bool has_variable(const LoadedElf& elf, std::string_view name) noexcept {
  return elf.find_variable(name, gnu_hash(name)) != nullptr;
}

void unshadow(const LoadedElf& library) noexcept {
  Slots slots;
  library.each_own_variable(
      [](void* context, const LoadedElf::Binding& reference) {
        if (is_shim(reference.bound_to)) static_cast<Slots*>(context)->set(reference.slot, reference.own);
      },
      &slots);
}

[[gnu::noinline]] void unshadow(const LoadedObject& library) noexcept {
  const LockGuard lock(g_lock);
  PageCache pages;
  if (lock) unshadow(library.elf.through(pages));
}

}  // namespace

void unshadow_variables_at_start() noexcept {
  each_library_at_start([](const LoadedElf& library) {
    if (has_variable(library, "cuInit")) unshadow(library);
  });
}

void unshadow_variables(const void* asking, std::string_view name) noexcept {
  const LoadedObject library = find_object_in_use(asking);
  if (!library || !is_new(library.load)) return;
  if (!has_variable(library.elf, name) && !has_variable(library.elf, "cuInit")) return;
  on_new_stack([&] { unshadow(library); });
}

}  // namespace kshim::shim

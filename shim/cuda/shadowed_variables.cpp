// SPDX-License-Identifier: Apache-2.0
#include "cuda/shadowed_variables.h"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <optional>

#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/timed_lock.h"
#include "process/link_map.h"
#include "process/page_protection.h"
#include "process/scattered_read.h"

namespace kshim::shim {
namespace {

/// One thread at a time: two that give a page its protection back would meet.
TimedLock g_lock;
/// Libraries that were looked at, by LoadedObject::load modulo the size. A library that was closed and opened
/// again may have the same number, and references that are bound to the shim again: one of them tells.
struct Seen {
  std::uint64_t load = 0;
  std::uintptr_t slot = 0;  ///< a reference to such a variable; 0 = the library has none
};
Seen g_seen[64];  // under g_lock

Seen& seen_of(const LoadedObject& library) noexcept { return g_seen[library.load % std::size(g_seen)]; }

bool is_done(const LoadedObject& library) noexcept {
  const Seen& seen = seen_of(library);
  std::uintptr_t bound_to = 0;
  return seen.load == library.load &&
         (seen.slot == 0 || (library.elf.copy(seen.slot, bound_to) && !is_shim(bound_to)));
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

/// The library's variable of that name (empty: of none), else its `cuInit`; 0 = none.
std::uintptr_t variable_of(const LoadedElf& elf, std::string_view name) noexcept {
  constexpr std::string_view kInit = "cuInit";
  void* const named = name.empty() ? nullptr : elf.find_variable(name, gnu_hash(name));
  return reinterpret_cast<std::uintptr_t>(named != nullptr ? named
                                                           : elf.find_variable(kInit, gnu_hash(kInit)));
}

/// Returns a reference to the library's variable of that name, or to another one; 0 = it has none.
std::uintptr_t unshadow(const LoadedElf& library, std::string_view name) noexcept {
  struct Work {
    std::uintptr_t variable;
    std::uintptr_t reference = 0;
    Slots slots{};
  } work{variable_of(library, name)};
  if (work.variable == 0) return 0;
  library.each_own_variable(
      [](void* context, const LoadedElf::Binding& reference) {
        auto& given = *static_cast<Work*>(context);
        if (reference.own == given.variable) given.reference = reference.slot;
        if (is_shim(reference.bound_to)) given.slots.set(reference.slot, reference.own);
      },
      &work);
  return work.reference;
}

/// Another thread of the library waits until it is done.
[[gnu::noinline]] void unshadow(const LoadedObject& library, const void* asking,
                                std::string_view name) noexcept {
  const ScopedBlockSignals held;  // a handler that jumps away, or stops this thread, would keep the lock
  const LockGuard lock(g_lock);
  if (!lock || is_done(library)) return;
  on_new_stack([&] {
    // By the linker's own look-up: the index may still have another library in that place.
    PageCache pages;
    LoadedElf elf = find_elf_by_linker(asking, pages);
    if (elf.high() == 0) elf = library.elf.through(pages);
    seen_of(library) = {library.load, unshadow(elf, name)};
  });
}

/// Where the index of loaded files cannot tell, because other threads load and unload libraries.
[[gnu::noinline]] void unshadow_unknown(const void* asking, std::string_view name) noexcept {
  const LockGuard lock(g_lock);
  PageCache pages;
  if (lock) unshadow(find_elf_by_linker(asking, pages), name);
}

}  // namespace

void unshadow_variables_at_start() noexcept {
  each_library_at_start([](const LoadedElf& library) { unshadow(library, {}); });
}

void unshadow_variables(const void* asking, std::string_view name) noexcept {
  const LoadedObject library = find_object_in_use(asking);
  if (!library)
    on_new_stack([&] { unshadow_unknown(asking, name); });
  else
    unshadow(library, asking, name);
}

}  // namespace kshim::shim

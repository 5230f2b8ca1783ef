// SPDX-License-Identifier: Apache-2.0
#include "cuda/rebind.h"

#include <dlfcn.h>

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
/// Libraries that were looked at, by LoadedObject::mapping_id modulo the size. A library that was closed and
/// opened again may have the same number, and references that are bound to the shim again: one of them tells.
struct Seen {
  std::uint64_t mapping_id = 0;
  std::uintptr_t slot = 0;  ///< a reference to such a variable; 0 = the library has none
};
Seen g_seen[64];  // under g_lock

Seen& seen_of(const LoadedObject& library) noexcept { return g_seen[library.mapping_id % std::size(g_seen)]; }

bool is_done(const LoadedObject& library) noexcept {
  const Seen& seen = seen_of(library);
  std::uintptr_t bound_to = 0;
  return seen.mapping_id == library.mapping_id &&
         (seen.slot == 0 || (library.elf.copy(seen.slot, bound_to) && !is_shim(bound_to)));
}

/// Writes to pages that are read-only after relocation.
class Slots {
 public:
  explicit Slots(const LoadedElf& elf) noexcept : elf_(elf) {}
  void set(std::uintptr_t slot, std::uintptr_t value) noexcept {
    constexpr std::uintptr_t kPage = 4096;
    if (slot % sizeof value != 0) return;
    if (!page_ || slot / kPage != number_) {
      page_.reset();
      number_ = slot / kPage;
      page_.emplace(elf_, slot, slot + sizeof value);
    }
    if (*page_) std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(slot)).store(value);
  }

 private:
  const LoadedElf& elf_;
  std::uintptr_t number_ = 0;
  std::optional<ScopedWritable> page_{};
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
    Slots slots;
    std::uintptr_t reference = 0;
  } work{variable_of(library, name), Slots(library)};
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

bool is_hooked(std::string_view name) noexcept {
  const std::size_t row = find_hook(name);
  return row != kHookCount && kHooks[row].layer == Layer::runtime;
}
bool is_not_hooked(std::string_view name) noexcept {
  return (name.starts_with("cuda") || name.starts_with("__cuda")) && find_hook(name) == kHookCount;
}

/// Whether the global scope has a runtime with that version node: then the linker takes it, for all. The
/// caller is in a look-up of the program's, or in a constructor, so the linker's lock is the thread's.
bool is_in_global_scope(std::string_view node) noexcept {
  using DlsymFn = void* (*)(void*, const char*);
  using DlvsymFn = void* (*)(void*, const char*, const char*);
  if (kshim_real_dlvsym == nullptr) return true;
  const bool found = reinterpret_cast<DlvsymFn>(kshim_real_dlvsym)(RTLD_DEFAULT, "cudaRuntimeGetVersion",
                                                                   node.data()) != nullptr;
  if (!found) reinterpret_cast<DlsymFn>(kshim_real_dlsym)(RTLD_DEFAULT, "dlsym");  // dlerror() says nothing
  return found;
}

enum class Scope : std::uint8_t { own, another, unknown };

/// Where the linker has bound a library's references to functions of a runtime that the shim does not
/// replace.
Scope scope_of(const LoadedElf& library, const LoadedElf& own) noexcept {
  struct Work {
    const LoadedElf& library;
    const LoadedElf& own;
    Scope scope = Scope::unknown;
  } work{library, own};
  library.each_binding(
      is_not_hooked,
      [](void* context, std::string_view, std::uintptr_t, std::uintptr_t address) {
        auto& given = *static_cast<Work*>(context);
        if (given.library.contains(address)) return true;  // not bound yet
        given.scope = given.own.contains(address) ? Scope::own : Scope::another;
        return false;
      },
      &work);
  return work.scope;
}

/// Binds what a library refers to of a runtime to `own`.
void bind_to_runtime(const LoadedElf& library, const LoadedElf& own, std::string_view node) noexcept {
  struct Work {
    const LoadedElf& library;
    const LoadedElf& own;
    std::string_view node;
    Slots slots;
  } work{library, own, node, Slots(library)};
  const ScopedBlockSignals held;
  const LockGuard lock(g_lock);
  if (!lock) return;
  library.each_binding(
      is_hooked,
      [](void* context, std::string_view name, std::uintptr_t slot, std::uintptr_t address) {
        auto& given = *static_cast<Work*>(context);
        const HookRow& row = kHooks[find_hook(name)];
        void* const function = given.own.find_function(row.name, row.gnu_hash, given.node);
        if (function != nullptr && (is_shim(address) || given.library.contains(address)))
          given.slots.set(slot, reinterpret_cast<std::uintptr_t>(function));
        return true;
      },
      &work);
}

bool is_linked_to(const LoadedObject& library, const LoadedObject& other) noexcept {
  return library.elf.needs(other.soname) || library.elf.needs(base_name(other.path));
}

/// For a runtime, beside the one that the wrappers call, that looks its first function up.
[[gnu::noinline]] void bind_users(const LoadedObject& library) noexcept {
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const auto runtime = static_cast<Runtime>(i);
    if (!is_runtime(library.elf, runtime)) continue;
    recheck_runtime(runtime);
    struct Work {
      const LoadedObject& runtime;
      std::string_view node;
      bool global;
    } work{library, kRuntimeSonames[i], false};
    if (runtime_address(runtime) == library.elf.low()) return;
    work.global = is_in_global_scope(work.node);
    on_new_stack([&work] {
      for_each_loaded_object(
          [](void* context, const LoadedObject& user) {
            const auto& given = *static_cast<const Work*>(context);
            if (user.at_start || !is_linked_to(user, given.runtime)) return true;
            const Scope scope = scope_of(user.elf, given.runtime.elf);
            if (scope == Scope::own || (scope == Scope::unknown && !given.global))
              bind_to_runtime(user.elf, given.runtime.elf, given.node);
            return true;
          },
          &work);
    });
    return;
  }
}

/// Whether this library has not been asked about before, as far as there is room.
bool is_new(const LoadedObject& library) noexcept {
  static std::atomic<std::uint64_t> g_asked[64];
  return g_asked[library.mapping_id % std::size(g_asked)].exchange(
             library.mapping_id, std::memory_order_relaxed) != library.mapping_id;
}

/// Another thread of the library waits until it is done.
[[gnu::noinline]] void unshadow(const LoadedObject& library, std::string_view name) noexcept {
  const ScopedBlockSignals held;  // a handler that jumps away, or stops this thread, would keep the lock
  const LockGuard lock(g_lock);
  if (!lock || is_done(library)) return;
  on_new_stack([&] {
    PageCache pages;
    seen_of(library) = {library.mapping_id, unshadow(library.elf.through(pages), name)};
  });
}

}  // namespace

void unshadow_variables_at_start() noexcept {
  each_library_at_start([](const LoadedElf& library) {
    if (variable_of(library, {}) == 0) return;
    // With its headers, which say what is read-only.
    const LoadedObject object = find_object_in_use(library.dynamic());
    unshadow(object.elf, {});
  });
}

void unshadow_variables(const void* asking, std::string_view name) noexcept {
  const LoadedObject library = find_object_in_use(asking);
  if (!library) return;
  unshadow(library, name);
  if (!library.at_start && is_new(library)) bind_users(library);
}

namespace {

/// The runtime that a library is linked to, if it is another one than the wrappers call, or if there is none
/// of these at the moment.
struct OwnRuntime {
  Runtime runtime;
  LoadedElf library;
  LoadedElf elf{};
  Scope scope = Scope::another;

  static bool visit(void* context, const LoadedObject& object) {
    auto& given = *static_cast<OwnRuntime*>(context);
    if ((given.library.needs(object.soname) || given.library.needs(base_name(object.path))) &&
        is_runtime(object.elf, given.runtime))
      given.elf = object.elf.without_cache();
    return given.elf.high() == 0;
  }
  void find() noexcept {
    const LoadedObject first = runtime_object(runtime);
    if (first && (library.needs(first.soname) || library.needs(base_name(first.path)))) return;
    for_each_loaded_object(visit, this);
    // One that was closed and has come back is no other copy.
    if (elf.high() != 0 && elf.low() != runtime_address(runtime)) scope = scope_of(library, elf);
  }
};

[[gnu::noinline]] AnyFunction bind_to_own(Runtime runtime, Hook hook, const LoadedElf& library) noexcept {
  OwnRuntime own{runtime, library};
  recheck_runtime(runtime);
  on_new_stack([&own] { own.find(); });
  const std::string_view node = kRuntimeSonames[static_cast<std::size_t>(runtime)];
  if (own.scope == Scope::another || (own.scope == Scope::unknown && is_in_global_scope(node)))
    return nullptr;
  AnyFunction found = nullptr;
  on_new_stack([&] {
    bind_to_runtime(library, own.elf, node);
    found = own.elf.find_function(row_of(hook).name, row_of(hook).gnu_hash, node);
  });
  return found;
}

}  // namespace

AnyFunction own_runtime_function(Runtime runtime, Hook hook, const void* caller) noexcept {
  // The last library that calls the wrappers' runtime: a library registers thousands of fatbins in a row.
  struct Known {
    std::atomic<std::uintptr_t> low{1}, high{0};
    std::atomic<std::uint64_t> closes{0};
    bool has(std::uintptr_t address) const noexcept {
      return address >= low.load() && address < high.load() && nothing_closed_since(closes.load());
    }
  };
  static constinit Known g_known[kRuntimeCount];
  Known& known = g_known[static_cast<std::size_t>(runtime)];
  if (known.has(reinterpret_cast<std::uintptr_t>(caller))) return nullptr;
  const std::uint64_t closes = count_closes();
  const LoadedObject library = find_object_in_use(caller);
  if (!library) return nullptr;
  const AnyFunction found = library.at_start ? nullptr : bind_to_own(runtime, hook, library.elf);
  if (found != nullptr) return found;
  known.high.store(0);  // while the rest changes
  known.closes.store(closes);
  known.low.store(library.elf.low());
  known.high.store(library.elf.high());
  return nullptr;
}

}  // namespace kshim::shim

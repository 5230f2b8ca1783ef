// SPDX-License-Identifier: Apache-2.0
#include "cuda/next_symbol.h"

#include <algorithm>
#include <iterator>

#include "cuda/cuda_libraries.h"
#include "guest/scratch_stack.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "process/link_map.h"
#include "process/scattered_read.h"

namespace kshim::shim {

std::atomic<AnyFunction> g_driver_rtld_next[kHookCount];
std::atomic<AnyFunction> g_libcuda_entry[kHookCount];
std::atomic<AnyFunction> g_driver_address[kHookCount];
std::atomic<AnyFunction> g_runtime_real[kRuntimeCount][kHookCount];

namespace {

/// What the tables have while no library is being closed. g_driver_low, g_runtime_objects and so on say whose
/// functions these are.
std::atomic<AnyFunction> g_known_rtld_next[kHookCount];
std::atomic<AnyFunction> g_known_libcuda_entry[kHookCount];
std::atomic<AnyFunction> g_known_runtime[kRuntimeCount][kHookCount];
std::atomic<std::uint32_t> g_known_changes{0};  ///< odd while these change
TimedLock g_changing;                           ///< of what is known
TimedLock g_filling;                            ///< of filling the tables; nobody waits for it
std::atomic<bool> g_published{false};           ///< the tables may be filled
std::atomic<std::uint64_t> g_closes{0};         ///< how often a dlclose has begun
std::atomic<std::uint32_t> g_closing{0};        ///< threads in dlclose

}  // namespace

std::uint64_t count_closes() noexcept {
  const std::uint64_t begun = g_closes.load();
  constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static std::atomic<std::uint64_t> g_unended{kNone};
  return g_closing.load() == 0 ? begun : g_unended.fetch_sub(1);
}

namespace {

// Rows by the address of libcuda's function, row + 1; open addressing, insert only. An entry is valid only if
// g_driver_address has the same address, so entries of a driver that was unloaded do no harm.
constexpr unsigned kAddressBits = 11;
constexpr std::size_t kAddressSlots = 1U << kAddressBits;
constexpr std::size_t kAddressProbes = 32;
std::atomic<std::uint16_t> g_rows_by_address[kAddressSlots];
std::atomic<bool> g_address_table_full{false};

std::size_t home_of(AnyFunction address) noexcept {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(address) * 0x9e3779b97f4a7c15ULL) >>
                                  (64U - kAddressBits));
}

std::atomic<AnyFunction>
    g_driver_rtld_next_address[kHookCount];  // as g_driver_address, of the next definition

std::atomic<std::uintptr_t> g_driver_low{0};
std::atomic<std::uintptr_t> g_driver_high{0};
std::atomic<std::uint64_t> g_driver_load{0};  ///< its number (LoadedObject::load)

/// Whether an object exports a static copy of the whole CUDA runtime. References with a version bind to
/// libcudart.so.N, never to such a copy.
bool carries_runtime(const LoadedElf& elf) noexcept {
  constexpr std::string_view kName = "cudaRuntimeGetVersion";
  return elf.find_symbol(kName, gnu_hash(kName)) != nullptr;
}

struct Definitions {
  LoadedObject library;  ///< the first object of the kind
  AnyFunction found[kHookCount] = {};
  bool lasting[kHookCount] = {};  ///< it is the library's, or came with the program

  bool none() const noexcept {
    return !library && std::all_of(std::begin(found), std::end(found),
                                   [](AnyFunction function) { return function == nullptr; });
  }
};

/// Whether a file defines a function of that layer.
bool defines_any(Layer layer, const LoadedElf& elf) noexcept {
  return std::any_of(std::begin(kHooks), std::end(kHooks), [&](const HookRow& row) {
    return row.layer == layer && elf.find_function(row.name, row.gnu_hash) != nullptr;
  });
}

/// The next definitions of the functions of one layer. The library itself (libcuda, a runtime) may have been
/// opened anywhere. A definition in another object is an interposer's if the object was loaded at program
/// start, which puts it into the global scope. Else it belongs to a plugin that was opened with RTLD_LOCAL.
/// One of the driver's is then for that plugin alone (find_own()); of a runtime's it is used only if there is
/// no other.
struct Search {
  Search(Layer of, std::size_t index, std::uint64_t load) noexcept
      : layer(of), runtime(index), driver(load) {}
  Layer layer;
  std::size_t runtime = 0;
  std::uint64_t driver = 0;  ///< the number of the libcuda that is meant; 0 = the first one
  bool any = false;          ///< look into plugins, too
  bool plugins = false;      ///< one of them defines a function of the driver
  PageCache pages;
  bool after_shim = false;    ///< of the list's objects; true at the end, if there was memory for the search
  std::uint64_t renamed = 0;  ///< the first libcuda under another file name, for where no file has the name
  Definitions result;

  bool is_library(const LoadedObject& object, const LoadedElf& elf) const noexcept {
    if (layer == Layer::runtime) return is_runtime(elf, static_cast<Runtime>(runtime));
    return driver == 0 ? names_libcuda(object.path) : is_libcuda(object) && object.load == driver;
  }
};

bool search_one(void* context, const LoadedObject& object) {
  auto& search = *static_cast<Search*>(context);
  if (is_shim(object.elf.base())) {
    search.after_shim = true;
    return true;
  }
  if (!search.after_shim) return true;
  const LoadedElf elf = object.elf.through(search.pages);
  const bool driver = search.layer == Layer::driver;
  const bool library = search.is_library(object, elf);
  if (driver && search.renamed == 0 && is_libcuda(object)) search.renamed = object.load;
  if (!library && !object.at_start && !search.any) return true;
  if (!library && !object.at_start && driver) {
    search.plugins = search.plugins || defines_any(search.layer, elf);
    return true;
  }
  if (!library && !driver && (elf.defines_versions() || carries_runtime(elf))) return true;
  if (library && !search.result.library) search.result.library = object;
  const std::string_view node = library && !driver ? kRuntimeSonames[search.runtime] : std::string_view();
  for (std::size_t i = 0; i < kHookCount; ++i)
    if (kHooks[i].layer == search.layer && search.result.found[i] == nullptr) {
      search.result.found[i] = elf.find_function(kHooks[i].name, kHooks[i].gnu_hash, node);
      search.result.lasting[i] =
          object.at_start || (library && object.elf.low() == search.result.library.elf.low());
    }
  return true;
}

void run(Search& search) noexcept {
  for_each_loaded_object_at_once(search_one, &search);
  if (search.result.library) return;
  if (search.driver == 0 && search.renamed != 0)
    search.driver = search.renamed;
  else
    search.any = true;
  search.after_shim = false;
  for_each_loaded_object_at_once(search_one, &search);
}

/// Up to where in the list a search for the driver, or for one of the runtimes, has found nothing. Libraries
/// come behind it, so that a look-up in a process without CUDA reads those alone that are new. Once a library
/// was closed, another may have its place in the list: all that came after the start are read again.
struct SearchedInVain {
  std::atomic<const link_map*> node{nullptr};
  std::atomic<std::uint64_t> hash{0};
  std::atomic<std::uint64_t> closes{0};  ///< count_closes() before
  std::atomic<bool> start{false};        ///< nothing of what came with the program

  void note(const ListMark& mark, std::uint64_t closes_before) noexcept {
    node.store(mark.node, std::memory_order_relaxed);
    hash.store(mark.hash, std::memory_order_relaxed);
    closes.store(closes_before, std::memory_order_relaxed);
  }
  /// From where on a search may still find something; false: from the beginning.
  bool find_end(MapNode& out) const noexcept {
    if (closes.load(std::memory_order_relaxed) == count_closes() &&
        find_marked({node.load(std::memory_order_relaxed), hash.load(std::memory_order_relaxed)}, out))
      return true;
    return start.load(std::memory_order_relaxed) && read_node(last_map_at_start(), out);
  }
};
constinit SearchedInVain g_in_vain[1 + kRuntimeCount];
/// A search has met a plugin with functions of the driver.
std::atomic<bool> g_plugins{false};

/// Whether a search might take something of a library.
bool may_have(Layer layer, std::size_t runtime, std::string_view path, const LoadedElf& elf) noexcept {
  char soname[64];
  if (layer == Layer::driver
          ? names_libcuda(path) || (elf.soname(soname, sizeof soname) && names_libcuda(soname))
          : is_runtime(elf, static_cast<Runtime>(runtime)))
    return true;
  return defines_any(layer, elf);
}

/// Whether a search still would find nothing.
bool is_in_vain(Layer layer, std::size_t runtime) noexcept {
  SearchedInVain& known = g_in_vain[layer == Layer::driver ? 0 : 1 + runtime];
  const std::uint64_t closes = count_closes();
  MapNode node;
  if (!known.find_end(node)) return false;
  if (node.map.l_next == nullptr) return true;
  bool nothing = false;
  on_new_stack([&] {
    PageCache pages;
    bool broken = false;
    while (next_node(node, broken)) {
      char path[512];
      if (!read_name(node, path, sizeof path) ||
          may_have(layer, runtime, path, read_elf(node, path, &pages).through(pages)))
        return;
      known.note(mark_of(node), closes);
    }
    nothing = !broken;
  });
  return nothing;
}

/// Runs on a stack of the shim's, because a program may look a function up on a small stack. Takes no lock:
/// the program must get its function, and two threads that fill the tables write the same values. Returns
/// false where there is no memory: then use() has no definitions, whatever is mapped.
template <class Use>
bool with_search(Layer layer, std::size_t runtime, std::uint64_t driver, const Use& use) noexcept {
  static constinit const Definitions kNone;
  if (driver == 0 && is_in_vain(layer, runtime)) {
    use(kNone, nullptr);
    return true;
  }
  bool searched = false;
  on_new_stack([&] {
    const std::uint64_t closes = count_closes();
    const ListMark end = mark_end_of_list();
    Search search(layer, runtime, driver);
    run(search);
    searched = search.after_shim;
    use(search.result, &search.pages);
    SearchedInVain& known = g_in_vain[layer == Layer::driver ? 0 : 1 + runtime];
    if (search.plugins) g_plugins.store(true, std::memory_order_relaxed);
    const bool in_vain = searched && driver == 0 && search.result.none();
    if (in_vain) known.start.store(true, std::memory_order_relaxed);
    known.note(in_vain ? end : ListMark(), closes);
  });
  return searched;
}

void remember_driver(const LoadedObject& object) noexcept {
  g_driver_load.store(object.load, std::memory_order_relaxed);
  g_driver_high.store(object.elf.high(), std::memory_order_relaxed);
  g_driver_low.store(object.elf.low(), std::memory_order_release);
}

/// The object that a runtime's table was filled from.
struct RuntimeObject {
  std::atomic<std::uintptr_t> low{0};
  std::atomic<std::uint64_t> load{0};
};
constinit RuntimeObject g_runtime_objects[kRuntimeCount];

bool is_there(const RuntimeObject& object) noexcept {
  return is_still_loaded(object.low.load(std::memory_order_acquire),
                         object.load.load(std::memory_order_relaxed));
}

bool is_driver_there() noexcept {
  const std::uintptr_t low = g_driver_low.load(std::memory_order_acquire);
  return low != 0 && is_still_loaded(low, g_driver_load.load(std::memory_order_relaxed));
}

using Table = std::atomic<AnyFunction>[kHookCount];

void clear(Table& table) noexcept {
  for (auto& function : table) function.store(nullptr, std::memory_order_release);
}

void clear_tables() noexcept {
  clear(g_driver_rtld_next);
  clear(g_libcuda_entry);
  for (Table& table : g_runtime_real) clear(table);
}

using IsLoaded = bool (*)(std::uintptr_t address, std::uint64_t load) noexcept;

/// Fills the tables with what is known and still mapped, unless a library is being closed. Under g_filling.
/// A thread that goes into dlclose does not wait for that: the tables are filled only while none has gone.
void fill_tables(IsLoaded is_loaded) noexcept {
  const std::uint64_t closes = g_closes.load();
  const std::uint32_t changes = g_known_changes.load();
  g_published.store(true);  // before the threads in dlclose are counted: one of the two sees the other
  if (changes % 2 != 0 || g_closing.load() != 0) return;
  const auto holds = [&] { return g_closes.load() == closes && g_known_changes.load() == changes; };
  const auto copy = [&](const Table& from, Table& to) {
    for (std::size_t i = 0; i < kHookCount && holds(); ++i)
      to[i].store(from[i].load(std::memory_order_relaxed), std::memory_order_release);
  };
  // What came with the program stays, where there is no libcuda, too.
  const std::uintptr_t driver = g_driver_low.load(std::memory_order_acquire);
  if (driver == 0 || is_loaded(driver, g_driver_load.load(std::memory_order_relaxed))) {
    copy(g_known_rtld_next, g_driver_rtld_next);
    copy(g_known_libcuda_entry, g_libcuda_entry);
  }
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    const std::uintptr_t runtime = g_runtime_objects[i].low.load(std::memory_order_acquire);
    if (runtime == 0 || is_loaded(runtime, g_runtime_objects[i].load.load(std::memory_order_relaxed)))
      copy(g_known_runtime[i], g_runtime_real[i]);
  }
  if (!holds()) clear_tables();
}

/// Does not wait: where another thread fills them, or was stopped while it did, this call goes on without.
void publish_unless_busy(IsLoaded is_loaded) noexcept {
  bool inherited = false;
  if (!g_filling.try_acquire(inherited)) return;
  fill_tables(is_loaded);
  g_filling.release();
}

/// For a call that has found its function: the next ones take it from the tables.
void publish() noexcept {
  if (g_closing.load() != 0) return;
  const ScopedBlockSignals held;
  publish_unless_busy(is_still_loaded);
}

bool is_anything_known() noexcept {
  return g_driver_low.load(std::memory_order_relaxed) != 0 ||
         std::any_of(std::begin(g_runtime_objects), std::end(g_runtime_objects),
                     [](const RuntimeObject& object) { return object.low.load() != 0; });
}

/// After the last dlclose, for a process that then forbids itself system calls: makes none. What it cannot
/// tell stays empty, and the next call fills it.
void publish_again() noexcept {
  if (is_anything_known() && g_closing.load() == 0) publish_unless_busy(is_surely_loaded);
}

/// Takes no lock and makes no system call: the next step is the program's dlclose. A thread that finds
/// nothing published goes on to unload the driver, so the tables are empty before that is said.
void unpublish() noexcept {
  if (!g_published.load()) return;
  clear_tables();
  g_published.store(false);
}

/// Reads what is known in one piece. False if it changed meanwhile, or if read() answers false.
template <class Read>
bool read_known(const Read& read) noexcept {
  const std::uint32_t before = g_known_changes.load(std::memory_order_acquire);
  if (before % 2 != 0 || !read()) return false;
  std::atomic_thread_fence(std::memory_order_acquire);
  return g_known_changes.load(std::memory_order_relaxed) == before;
}

/// change() changes what is known, if is_newer() then: another thread's search may have ended before.
template <class IsNewer, class Change>
void change_known(const IsNewer& is_newer, const Change& change) noexcept {
  const ScopedBlockSignals held;
  const LockGuard lock(g_changing);
  if (!lock || !is_newer()) return;
  if (g_known_changes.load() % 2 == 0) g_known_changes.fetch_add(1);  // else a thread of the parent's left it
  change();
  g_known_changes.fetch_add(1);
}

struct Wanted {
  Hook hook;
  bool exported;
  AnyFunction function = nullptr;
};

/// `load`: of the libcuda to take; 0 = the first one that is mapped, or none. `wanted`: what this search has
/// found. False where there is no memory for the search.
bool fill_driver(std::uint64_t load, Wanted* wanted = nullptr) noexcept {
  bool any = false;
  const bool searched =
      with_search(Layer::driver, 0, load, [&](const Definitions& definitions, PageCache* pages) {
        const LoadedElf& elf = definitions.library.elf;
        const LoadedElf library = pages == nullptr ? elf : elf.through(*pages);
        AnyFunction own[kHookCount] = {};
        for (std::size_t i = 0; i < kHookCount && definitions.library; ++i)
          if (kHooks[i].layer == Layer::driver)
            own[i] = library.find_function(kHooks[i].name, kHooks[i].gnu_hash);
        any = !definitions.none();
        if (wanted != nullptr) {
          const AnyFunction found = (wanted->exported ? definitions.found : own)[index_of(wanted->hook)];
          wanted->function = wrap_for_counting(wanted->hook, wanted->exported, found);
        }
        change_known(
            [&] {
              const bool same = definitions.library.load == g_driver_load.load(std::memory_order_relaxed);
              return (load != 0 || same || !is_driver_there()) &&
                     (!definitions.library || is_still_loaded(elf.low(), definitions.library.load));
            },
            [&] {
              for (std::size_t i = 0; i < kHookCount; ++i)
                if (kHooks[i].layer == Layer::driver) {
                  const auto hook = static_cast<Hook>(i);
                  g_known_rtld_next[i].store(wrap_for_counting(hook, true, definitions.found[i]),
                                             std::memory_order_relaxed);
                  g_driver_rtld_next_address[i].store(definitions.found[i], std::memory_order_release);
                  set_driver_own(hook, own[i]);
                }
              remember_driver(definitions.library);
            });
      });
  if (any) publish();
  return searched;
}

/// The library's own function, where no memory can be mapped for the search, which then finds nothing: a
/// program that lacks memory for a moment must not be told that it has no driver. Maps nothing.
AnyFunction find_without_memory(Hook hook, std::size_t runtime) noexcept {
  const HookRow& row = row_of(hook);
  const bool driver = row.layer == Layer::driver;
  MapNode node;
  bool broken = false;
  for (bool more = read_node(link_map_head(), node); more; more = next_node(node, broken)) {
    char path[512];
    if (!read_name(node, path, sizeof path)) continue;
    if (!driver && !base_name(path).starts_with("libcudart")) continue;
    const LoadedElf elf = read_elf(node, path, nullptr);
    char soname[64];
    if (driver && (names_libcuda(path) || (elf.soname(soname, sizeof soname) && names_libcuda(soname))))
      return elf.find_function(row.name, row.gnu_hash);
    if (driver) continue;
    if (is_runtime(elf, static_cast<Runtime>(runtime)))
      return elf.find_function(row.name, row.gnu_hash, kRuntimeSonames[runtime]);
  }
  return nullptr;
}

}  // namespace

bool is_driver_next(Hook hook) noexcept {
  const AnyFunction next = g_driver_rtld_next_address[index_of(hook)].load(std::memory_order_acquire);
  return next != nullptr && next == g_driver_address[index_of(hook)].load(std::memory_order_acquire);
}

void set_driver_own(Hook hook, AnyFunction address) noexcept {
  const AnyFunction counted = wrap_for_counting(hook, false, address);
  g_known_libcuda_entry[index_of(hook)].store(counted, std::memory_order_release);
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

bool has_next_at_start(Hook hook) noexcept {
  if (current_driver() == 0) find_driver();
  const AnyFunction next = g_driver_rtld_next_address[index_of(hook)].load(std::memory_order_acquire);
  return next != nullptr && find_loaded_object(next).at_start;
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

void recheck_driver() noexcept {
  const std::uintptr_t low = g_driver_low.load(std::memory_order_acquire);
  if (low != 0 && !is_driver_there()) find_driver();
}

std::uint64_t current_driver() noexcept {
  recheck_driver();
  return g_driver_load.load(std::memory_order_acquire);
}

LoadedObject driver_object() noexcept {
  recheck_driver();
  const std::uintptr_t low = g_driver_low.load(std::memory_order_acquire);
  const LoadedObject found = low == 0 ? LoadedObject() : find_loaded_object(low);
  return found.load == g_driver_load.load(std::memory_order_relaxed) ? found : LoadedObject();
}

std::string_view driver_path() noexcept { return driver_object().path; }

bool adopt_driver(const LoadedObject& object) noexcept {
  if (g_driver_load.load(std::memory_order_acquire) == object.load) return true;
  // What the program has looked up in one driver must not go to another.
  if (is_driver_there()) return false;
  // Under another file name it is the driver only where no file has the driver's.
  fill_driver(names_libcuda(object.path) ? object.load : 0);
  return g_driver_load.load(std::memory_order_acquire) == object.load;
}

void find_driver() noexcept { fill_driver(0); }

AnyFunction find_driver(Hook hook, bool exported) noexcept {
  std::atomic<AnyFunction>& known = (exported ? g_known_rtld_next : g_known_libcuda_entry)[index_of(hook)];
  Wanted wanted{hook, exported};
  if (read_known([&] {
        wanted.function = known.load(std::memory_order_relaxed);
        return wanted.function != nullptr && is_driver_there();
      })) {
    publish();
  } else if (!fill_driver(0, &wanted) && wanted.function == nullptr) {
    wanted.function = wrap_for_counting(hook, exported, find_without_memory(hook, 0));
    known.store(wanted.function, std::memory_order_release);
    publish();
  }
  return wanted.function;
}

AnyFunction find_own(Hook hook, const void* caller) noexcept {
  struct Own {
    const HookRow& row;
    PageCache pages{};
    LoadedElf asking{};
    AnyFunction found = nullptr;
    // Of what the caller's file is linked to: other plugins may be unloaded in this moment.
    static bool visit(void* context, const LoadedObject& object) {
      auto& own = *static_cast<Own*>(context);
      if (own.asking.needs(object.soname) || own.asking.needs(base_name(object.path)))
        own.found = object.elf.find_function(own.row.name, own.row.gnu_hash);
      return own.found == nullptr;
    }
  };
  AnyFunction found = nullptr;
  on_new_stack([&] {
    Own own{row_of(hook)};
    own.asking = find_elf_by_linker(caller, own.pages);
    if (own.asking.high() == 0) own.asking = find_object_in_use(caller).elf;
    if (is_shim(own.asking.base())) return;
    own.found = own.asking.find_function(own.row.name, own.row.gnu_hash);
    if (own.found == nullptr && g_plugins.load(std::memory_order_relaxed))
      for_each_loaded_object_at_once(Own::visit, &own);
    found = own.found;
  });
  return found;
}

AnyFunction known_runtime(Runtime runtime, Hook hook) noexcept {
  const auto index = static_cast<std::size_t>(runtime);
  AnyFunction function = nullptr;
  const bool known = read_known([&] {
    function = g_known_runtime[index][index_of(hook)].load(std::memory_order_relaxed);
    return function != nullptr && is_there(g_runtime_objects[index]);
  });
  return known ? function : nullptr;
}

AnyFunction known_routed(Hook hook) noexcept {
  return is_driver_there() ? g_known_libcuda_entry[index_of(hook)].load(std::memory_order_acquire) : nullptr;
}

AnyFunction find_runtime(Runtime runtime, Hook hook) noexcept {
  const auto index = static_cast<std::size_t>(runtime);
  AnyFunction function = known_runtime(runtime, hook);
  const auto keep = [&](const Definitions& definitions, PageCache*) {
    function = definitions.found[index_of(hook)];
    const LoadedObject& library = definitions.library;
    RuntimeObject& object = g_runtime_objects[index];
    change_known(
        [&] {
          return (!is_there(object) || object.load.load() == library.load) &&
                 (!library || is_still_loaded(library.elf.low(), library.load));
        },
        [&] {
          for (std::size_t i = 0; i < kHookCount; ++i)
            if (kHooks[i].layer == Layer::runtime)
              g_known_runtime[index][i].store(definitions.lasting[i] ? definitions.found[i] : nullptr,
                                              std::memory_order_relaxed);
          object.load.store(library.load, std::memory_order_relaxed);
          object.low.store(library.elf.low(), std::memory_order_release);
        });
  };
  if (function == nullptr && !with_search(Layer::runtime, index, 0, keep)) {
    function = find_without_memory(hook, index);
    g_known_runtime[index][index_of(hook)].store(function, std::memory_order_release);
  }
  if (function != nullptr) publish();
  return function;
}

void recheck_runtime(Runtime runtime) noexcept {
  if (!is_there(g_runtime_objects[static_cast<std::size_t>(runtime)]))
    find_runtime(runtime, Hook::__cudaRegisterFatBinary);
}

std::uintptr_t runtime_address(Runtime runtime) noexcept {
  return g_runtime_objects[static_cast<std::size_t>(runtime)].low.load(std::memory_order_acquire);
}

LoadedObject runtime_object(Runtime runtime) noexcept {
  const RuntimeObject& object = g_runtime_objects[static_cast<std::size_t>(runtime)];
  const std::uintptr_t low = object.low.load(std::memory_order_acquire);
  const LoadedObject found = low == 0 ? LoadedObject() : find_loaded_object(low);
  return found.load == object.load.load(std::memory_order_relaxed) ? found : LoadedObject();
}

void close_begins() noexcept {
  g_closing.fetch_add(1);
  g_closes.fetch_add(1);
  unpublish();
}

void close_ends() noexcept {
  std::uint32_t threads = g_closing.load();
  while (threads != 0 && !g_closing.compare_exchange_weak(threads, threads - 1)) continue;
  if (threads <= 1) publish_again();
}

void forget_closing_threads() noexcept { g_closing.store(0); }

AnyFunction driver_function(const char* name, PageCache* pages) noexcept {
  const LoadedObject driver = driver_object();
  if (!driver) return nullptr;
  return (pages == nullptr ? driver.elf : driver.elf.through(*pages)).find_function(name, gnu_hash(name));
}

bool in_driver(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t low = g_driver_low.load(std::memory_order_acquire);
  return value >= low && value < g_driver_high.load(std::memory_order_relaxed) &&
         is_still_loaded(low, g_driver_load.load(std::memory_order_relaxed));
}

}  // namespace kshim::shim

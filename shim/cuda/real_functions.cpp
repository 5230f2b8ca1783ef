// SPDX-License-Identifier: Apache-2.0
#include "cuda/real_functions.h"

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

void* kshim_real_dlsym = nullptr;
void* kshim_real_dlvsym = nullptr;

namespace kshim::shim {

std::atomic<AnyFunction> g_driver_rtld_next[kHookCount];
std::atomic<AnyFunction> g_libcuda_entry[kHookCount];
std::atomic<AnyFunction> g_driver_address[kHookCount];
std::atomic<AnyFunction> g_runtime_real[kRuntimeCount][kHookCount];

namespace {

/// Of all that is known of the driver and the runtimes, and of filling and emptying the tables.
TimedLock g_lock;
std::atomic<bool> g_filled{false};        ///< the tables may have entries
std::atomic<std::uint32_t> g_closing{0};  ///< threads in dlclose
std::atomic<std::uint64_t> g_closes{0};   ///< beginnings and ends of dlclose

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

// What was found, whether a library is being closed or not. g_driver_low, g_runtime_objects and so on say
// whose functions these and those of g_driver_address are.
std::atomic<AnyFunction> g_driver_rtld_next_address[kHookCount];
std::atomic<AnyFunction> g_runtime_address[kRuntimeCount][kHookCount];

std::atomic<std::uintptr_t> g_driver_low{0};
std::atomic<std::uintptr_t> g_driver_high{0};
std::atomic<std::uint64_t> g_driver_load{0};  ///< its number (LoadedObject::mapping_id)

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

/// Whether a file stands for the driver (TensorFlow, Implib.so).
bool defines_driver(const LoadedElf& elf) noexcept {
  constexpr std::string_view kInit = "cuInit";
  return elf.find_function(kInit, gnu_hash(kInit)) != nullptr;
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
  bool after_shim = false;    ///< of the list's objects
  std::uint64_t renamed = 0;  ///< the first libcuda under another file name, for where no file has the name
  Definitions result;

  bool is_library(const LoadedObject& object, const LoadedElf& elf) const noexcept {
    if (layer == Layer::runtime) return is_runtime(elf, static_cast<Runtime>(runtime));
    return driver == 0 ? names_libcuda(object.path) : is_libcuda(object) && object.mapping_id == driver;
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
  if (driver && search.renamed == 0 && is_libcuda(object)) search.renamed = object.mapping_id;
  if (!library && !object.at_start && !search.any) return true;
  if (!library && !object.at_start && driver) {
    search.plugins = search.plugins || defines_driver(elf);
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
  for_each_loaded_object(search_one, &search);
  if (search.result.library) return;
  if (search.driver == 0 && search.renamed != 0)
    search.driver = search.renamed;
  else
    search.any = true;
  search.after_shim = false;
  for_each_loaded_object(search_one, &search);
}

/// The list in which a search for the driver, or for one of the runtimes, has found nothing: libraries come
/// behind its end, and go by dlclose.
struct KnownAbsent {
  std::atomic<const link_map*> node{nullptr};
  std::atomic<std::uint64_t> hash{0};
  std::atomic<std::uint64_t> closes{0};  ///< count_closes() before

  void note(const ListMark& end, std::uint64_t closes_before) noexcept {
    node.store(end.node, std::memory_order_relaxed);
    hash.store(end.hash, std::memory_order_relaxed);
    closes.store(closes_before, std::memory_order_relaxed);
  }
  /// Whether the list is the same.
  explicit operator bool() const noexcept {
    MapNode end;
    return nothing_closed_since(closes.load(std::memory_order_relaxed)) &&
           find_marked({node.load(std::memory_order_relaxed), hash.load(std::memory_order_relaxed)}, end) &&
           end.map.l_next == nullptr;
  }
};
constinit KnownAbsent g_known_absent[1 + kRuntimeCount];
/// A search has met a plugin with functions of the driver.
std::atomic<bool> g_plugins{false};

/// Runs on a stack of the shim's, because a program may look a function up on a small stack. Takes no lock:
/// the program must get its function, and two threads that fill the tables write the same values.
template <class Use>
void with_search(Layer layer, std::size_t runtime, std::uint64_t driver, const Use& use) noexcept {
  static constinit const Definitions kNone;
  KnownAbsent& absent = g_known_absent[layer == Layer::driver ? 0 : 1 + runtime];
  if (driver == 0 && absent) return use(kNone, nullptr);
  on_new_stack([&] {
    const std::uint64_t closes = count_closes();
    const ListMark end = mark_end_of_list();
    Search search(layer, runtime, driver);
    run(search);
    use(search.result, &search.pages);
    if (search.plugins) g_plugins.store(true, std::memory_order_relaxed);
    absent.note(driver == 0 && search.result.none() ? end : ListMark(), closes);
  });
}

void remember_driver(const LoadedObject& object) noexcept {
  g_driver_load.store(object.mapping_id, std::memory_order_relaxed);
  g_driver_high.store(object.elf.high(), std::memory_order_relaxed);
  g_driver_low.store(object.elf.low(), std::memory_order_release);
}

/// The object that a runtime's table was filled from.
struct RuntimeObject {
  std::atomic<std::uintptr_t> low{0};  ///< 0 = none
  std::atomic<std::uint64_t> mapping_id{0};
};
constinit RuntimeObject g_runtime_objects[kRuntimeCount];

bool is_there(std::uintptr_t low, std::uint64_t mapping_id) noexcept {
  const std::uint64_t now = find_loaded_object(low).mapping_id;
  if (now != 0 || low == 0) return now == mapping_id && low != 0;
  // Another thread may keep the index to itself: then the linker's word alone counts.
  FoundByLinker found{};
  const FindByLinker find = linkers_look_up();
  return find != nullptr && find(reinterpret_cast<void*>(low), &found) == 0;
}

/// While no thread is in dlclose, what is known is there: close_ends() has looked.
bool is_surely_there(std::uintptr_t low, std::uint64_t mapping_id) noexcept {
  return low != 0 && (g_closing.load() == 0 || is_there(low, mapping_id));
}

bool is_runtime_there(const RuntimeObject& object) noexcept {
  return is_surely_there(object.low.load(std::memory_order_acquire),
                         object.mapping_id.load(std::memory_order_relaxed));
}

bool is_driver_there() noexcept {
  return is_surely_there(g_driver_low.load(std::memory_order_acquire),
                         g_driver_load.load(std::memory_order_relaxed));
}

std::atomic<WrapLaunch> g_wrap_launch{nullptr};

AnyFunction wrapped(Hook hook, bool exported, AnyFunction real) noexcept {
  const WrapLaunch wrap = g_wrap_launch.load(std::memory_order_relaxed);
  return wrap == nullptr || real == nullptr ? real : wrap(hook, exported, real);
}

using Table = std::atomic<AnyFunction>[kHookCount];

void clear(Table& table) noexcept {
  for (auto& function : table) function.store(nullptr, std::memory_order_release);
}

void fill_driver_tables() noexcept {
  for (std::size_t i = 0; i < kHookCount; ++i) {
    const auto hook = static_cast<Hook>(i);
    g_driver_rtld_next[i].store(wrapped(hook, true, g_driver_rtld_next_address[i].load()),
                                std::memory_order_release);
    g_libcuda_entry[i].store(wrapped(hook, false, g_driver_address[i].load()), std::memory_order_release);
  }
}

void fill_runtime_table(std::size_t runtime) noexcept {
  for (std::size_t i = 0; i < kHookCount; ++i)
    g_runtime_real[runtime][i].store(g_runtime_address[runtime][i].load(), std::memory_order_release);
}

/// For a call that has found its function: the next ones take it from the tables. Fills them with what is
/// known, unless a library is being closed.
void publish() noexcept {
  if (g_closing.load() != 0) return;
  const ScopedBlockSignals held;
  const LockGuard lock(g_lock);
  if (!lock) return;
  // Set before g_closing is read, and read after g_closing is set: either this thread sees the one that goes
  // into dlclose, or that one waits for the lock and empties the tables.
  g_filled.store(true);
  if (g_closing.load() != 0) return;
  fill_driver_tables();
  for (std::size_t i = 0; i < kRuntimeCount; ++i) fill_runtime_table(i);
}

/// A search's result, unless it was closed meanwhile.
bool is_mapped(const LoadedObject& library) noexcept {
  return !library || is_there(library.elf.low(), library.mapping_id);
}

/// change() changes what is known, if is_newer() then: another thread's search may have ended before.
template <class IsNewer, class Change>
void change_known(const IsNewer& is_newer, const Change& change) noexcept {
  const ScopedBlockSignals held;
  const LockGuard lock(g_lock);
  if (lock && is_newer()) change();
}

/// What was found of the driver, if that is still mapped.
AnyFunction known_driver(Hook hook, bool exported) noexcept {
  const auto& table = exported ? g_driver_rtld_next_address : g_driver_address;
  const AnyFunction address = table[index_of(hook)].load(std::memory_order_acquire);
  return address != nullptr && is_driver_there() ? wrapped(hook, exported, address) : nullptr;
}

struct Wanted {
  Hook hook;
  bool exported;
  AnyFunction function = nullptr;
};

/// `load`: of the libcuda to take; 0 = the first one that is mapped, or none. `wanted`: what this search has
/// found.
void fill_driver(std::uint64_t load, Wanted* wanted = nullptr) noexcept {
  bool any = false;
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
      wanted->function = wrapped(wanted->hook, wanted->exported, found);
    }
    change_known(
        [&] {
          const bool same = definitions.library.mapping_id == g_driver_load.load(std::memory_order_relaxed);
          return (load != 0 || same || !is_driver_there()) && is_mapped(definitions.library);
        },
        [&] {
          for (std::size_t i = 0; i < kHookCount; ++i)
            if (kHooks[i].layer == Layer::driver) {
              g_driver_rtld_next_address[i].store(definitions.found[i], std::memory_order_release);
              set_driver_own(static_cast<Hook>(i), own[i]);
            }
          remember_driver(definitions.library);
        });
  });
  if (any) publish();
}

}  // namespace

bool is_driver_next(Hook hook) noexcept {
  const AnyFunction next = g_driver_rtld_next_address[index_of(hook)].load(std::memory_order_acquire);
  return next != nullptr && next == g_driver_address[index_of(hook)].load(std::memory_order_acquire);
}

void set_driver_own(Hook hook, AnyFunction address) noexcept {
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

std::uint64_t current_driver() noexcept { return g_driver_load.load(std::memory_order_acquire); }

LoadedObject driver_object() noexcept {
  const std::uintptr_t low = g_driver_low.load(std::memory_order_acquire);
  const LoadedObject found = low == 0 ? LoadedObject() : find_loaded_object(low);
  return found.mapping_id == g_driver_load.load(std::memory_order_relaxed) ? found : LoadedObject();
}

std::string_view driver_path() noexcept { return driver_object().path; }

bool adopt_driver(const LoadedObject& object) noexcept {
  if (g_driver_load.load(std::memory_order_acquire) == object.mapping_id) return true;
  // What the program has looked up in one driver must not go to another.
  if (is_driver_there()) return false;
  // Under another file name it is the driver only where no file has the driver's.
  fill_driver(names_libcuda(object.path) ? object.mapping_id : 0);
  return g_driver_load.load(std::memory_order_acquire) == object.mapping_id;
}

void wrap_launches(WrapLaunch wrap) noexcept {
  g_wrap_launch.store(wrap, std::memory_order_relaxed);
  close_begins();  // an earlier constructor may have filled the tables
  close_ends();
}

void find_driver() noexcept { fill_driver(0); }

AnyFunction find_driver(Hook hook, bool exported) noexcept {
  Wanted wanted{hook, exported, known_driver(hook, exported)};
  if (wanted.function == nullptr)
    fill_driver(0, &wanted);
  else
    publish();
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
    own.asking = find_object_in_use(caller).elf.through(own.pages);
    if (is_shim(own.asking.base())) return;
    own.found = own.asking.find_function(own.row.name, own.row.gnu_hash);
    if (own.found == nullptr && g_plugins.load(std::memory_order_relaxed))
      for_each_loaded_object(Own::visit, &own);
    found = own.found;
  });
  return found;
}

AnyFunction known_runtime(Runtime runtime, Hook hook) noexcept {
  const auto index = static_cast<std::size_t>(runtime);
  const AnyFunction address = g_runtime_address[index][index_of(hook)].load(std::memory_order_acquire);
  return address != nullptr && is_runtime_there(g_runtime_objects[index]) ? address : nullptr;
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
          return (!is_runtime_there(object) || object.mapping_id.load() == library.mapping_id) &&
                 is_mapped(library);
        },
        [&] {
          for (std::size_t i = 0; i < kHookCount; ++i)
            if (kHooks[i].layer == Layer::runtime)
              g_runtime_address[index][i].store(definitions.lasting[i] ? definitions.found[i] : nullptr,
                                                std::memory_order_relaxed);
          object.mapping_id.store(library.mapping_id, std::memory_order_relaxed);
          object.low.store(library.elf.low(), std::memory_order_release);
        });
  };
  if (function == nullptr) with_search(Layer::runtime, index, 0, keep);
  if (function != nullptr) publish();
  return function;
}

void recheck_runtime(Runtime runtime) noexcept {
  if (!is_runtime_there(g_runtime_objects[static_cast<std::size_t>(runtime)]))
    find_runtime(runtime, Hook::__cudaRegisterFatBinary);
}

std::uintptr_t runtime_address(Runtime runtime) noexcept {
  return g_runtime_objects[static_cast<std::size_t>(runtime)].low.load(std::memory_order_acquire);
}

LoadedObject runtime_object(Runtime runtime) noexcept {
  const RuntimeObject& object = g_runtime_objects[static_cast<std::size_t>(runtime)];
  const std::uintptr_t low = object.low.load(std::memory_order_acquire);
  const LoadedObject found = low == 0 ? LoadedObject() : find_loaded_object(low);
  return found.mapping_id == object.mapping_id.load(std::memory_order_relaxed) ? found : LoadedObject();
}

namespace {

void forget_what_is_gone() noexcept {
  const ScopedBlockSignals held;
  const LockGuard lock(g_lock);
  if (g_driver_low.load() != 0 && !is_there(g_driver_low.load(), g_driver_load.load())) {
    clear(g_driver_rtld_next_address);
    clear(g_driver_address);
    remember_driver({});
  }
  for (std::size_t i = 0; i < kRuntimeCount; ++i) {
    RuntimeObject& object = g_runtime_objects[i];
    if (object.low.load() == 0 || is_there(object.low.load(), object.mapping_id.load())) continue;
    clear(g_runtime_address[i]);
    object.low.store(0);
  }
}

}  // namespace

void close_begins() noexcept {
  g_closing.fetch_add(1);
  g_closes.fetch_add(1);
  if (!g_filled.load()) return;
  const ScopedBlockSignals held;
  const LockGuard lock(g_lock);
  clear(g_driver_rtld_next);
  clear(g_libcuda_entry);
  for (Table& table : g_runtime_real) clear(table);
}

void close_ends() noexcept {
  g_closes.fetch_add(1);
  if (g_filled.load()) forget_what_is_gone();
  std::uint32_t threads = g_closing.load();
  while (threads != 0 && !g_closing.compare_exchange_weak(threads, threads - 1)) continue;
  // A child of fork that forbids itself system calls may call the driver while it ends.
  if (threads <= 1 && g_filled.load()) publish();
}

void forget_closing_threads() noexcept { g_closing.store(0); }

std::uint64_t count_closes() noexcept { return g_closes.load(); }

bool nothing_closed_since(std::uint64_t closes) noexcept {
  return g_closing.load() == 0 && g_closes.load() == closes;
}

AnyFunction driver_function(const char* name, PageCache* pages) noexcept {
  const LoadedObject driver = driver_object();
  if (!driver) return nullptr;
  return (pages == nullptr ? driver.elf : driver.elf.through(*pages)).find_function(name, gnu_hash(name));
}

bool in_driver(const void* address) noexcept {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return value >= g_driver_low.load(std::memory_order_acquire) &&
         value < g_driver_high.load(std::memory_order_relaxed);
}

}  // namespace kshim::shim

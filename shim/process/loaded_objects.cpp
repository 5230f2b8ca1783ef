// SPDX-License-Identifier: Apache-2.0
#include "process/loaded_objects.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "guest/errno_keeper.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "guest/timed_lock.h"
#include "process/link_map.h"

// The linker's marks of where this library begins and ends in memory.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char _end[];

namespace kshim::shim {
namespace {

constexpr std::size_t kMaxObjects = 4096;

struct Identity {
  std::string_view path;
  std::string_view soname;
  char build_id[20] = {};
  std::uint8_t build_id_size = 0;
};
/// For finding an address: in the order of `low`. A program may lie in another's gap, so each range also says
/// how far those before it reach.
struct Range {
  std::uintptr_t low = 0;
  std::uintptr_t reach = 0;
  std::size_t object = 0;
};
struct Cache {
  unsigned long long adds = 0;
  unsigned long long subs = 0;
  std::size_t count = 0;
  ObjectView objects[kMaxObjects];  ///< in link order
  Range ranges[kMaxObjects];
};

PatientLock g_lock;
constinit Cache g_cache;
constinit Identity g_identities[kMaxIdentities];
std::size_t g_identity_count = 0;

std::string_view executable_path() noexcept {
  static char g_path[4096];
  static std::atomic<std::size_t> g_size{0};
  std::size_t size = g_size.load(std::memory_order_acquire);
  if (size == 0) {
    // A sanitizer looks its functions up while its own readlink leads nowhere yet.
    const ssize_t got = raw::read_link("/proc/self/exe", g_path, sizeof g_path);
    size = got > 0 ? static_cast<std::size_t>(got) : 0;
    g_size.store(size, std::memory_order_release);
  }
  return {g_path, size};
}

/// Under g_lock. Gives the same number to the same file (path and build id), however often it is mapped.
std::uint32_t identify(std::string_view name, Bytes build_id, std::string_view& kept) noexcept {
  static constinit PathText absolute;  // not on the stack of whoever calls _exit in a signal handler
  if (!name.starts_with('/')) {
    static char folder[2048];
    absolute.shrink(0);
    if (raw::working_folder(folder, sizeof folder)) absolute << folder << "/";
    absolute << (name.starts_with("./") ? name.substr(2) : name);
    name = absolute.view();
  }
  const Bytes id = build_id.size() <= 20 ? build_id : Bytes();
  for (std::size_t i = 0; i < g_identity_count; ++i) {
    Identity& known = g_identities[i];
    if (known.path == name && text_of(id) == std::string_view(known.build_id, known.build_id_size)) {
      kept = known.path;
      return static_cast<std::uint32_t>(i + 1);
    }
  }
  kept = keep_text(name);
  if (kept.empty() || g_identity_count + 1 >= kMaxIdentities) return 0;
  Identity& fresh = g_identities[g_identity_count++];
  fresh.path = kept;
  fresh.build_id_size = static_cast<std::uint8_t>(id.size());
  if (!id.empty()) std::memcpy(fresh.build_id, id.data(), id.size());
  return static_cast<std::uint32_t>(g_identity_count);
}

int peek(dl_phdr_info* info, std::size_t, void* context) {
  auto& counters = *static_cast<Cache*>(context);
  const bool same = counters.adds == info->dlpi_adds && counters.subs == info->dlpi_subs;
  return same ? 1 : 2;  // both stop at the first object
}

int collect(dl_phdr_info* info, std::size_t, void*) {
  g_cache.adds = info->dlpi_adds;
  g_cache.subs = info->dlpi_subs;
  std::string_view name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (name.empty() && g_cache.count == 0) name = executable_path();
  if (name.empty() || name.starts_with("linux-") || g_cache.count == kMaxObjects) return 0;
  ObjectView& view = g_cache.objects[g_cache.count];
  view.elf = LoadedElf(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
  view.identity = identify(name, view.elf.build_id(), view.path);
  if (view.identity == 0) return 0;
  Identity& known = g_identities[view.identity - 1];
  if (known.soname.data() == nullptr) known.soname = keep_text(view.elf.soname());
  view.soname = known.soname;
  ++g_cache.count;
  return 0;
}

/// Under g_lock.
void refresh() noexcept {
  if (g_cache.count != 0 && each_of_linker(peek, &g_cache) == 1) return;
  g_cache.count = 0;
  each_of_linker(collect, nullptr);
  for (std::size_t i = 0; i < g_cache.count; ++i)
    g_cache.ranges[i] = {g_cache.objects[i].elf.low(), g_cache.objects[i].elf.high(), i};
  const auto ranges = std::span(g_cache.ranges).first(g_cache.count);
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.low < b.low; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    ranges[i].reach = std::max(ranges[i].reach, ranges[i - 1].reach);
}

/// Under g_lock, and while the linker takes nothing off its list (dl_iterate_phdr): the headers that are
/// looked at lie in the objects. nullptr where no object holds the address.
const ObjectView* find_object(std::uintptr_t address) noexcept {
  const auto ranges = std::span(g_cache.ranges).first(g_cache.count);
  auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                [](std::uintptr_t wanted, const Range& range) { return wanted < range.low; });
  while (after != ranges.begin() && (--after)->reach > address) {
    const ObjectView& view = g_cache.objects[after->object];
    if (view.elf.contains(address)) return &view;
  }
  return nullptr;
}

struct Wanted {
  std::uintptr_t address;
  bool fresh;
  ObjectView found;
};
int find_wanted(dl_phdr_info* info, std::size_t, void* context) {
  auto& wanted = *static_cast<Wanted*>(context);
  wanted.fresh = g_cache.adds == info->dlpi_adds && g_cache.subs == info->dlpi_subs;
  const ObjectView* found = wanted.fresh ? find_object(wanted.address) : nullptr;
  if (found != nullptr) wanted.found = *found;
  return 1;
}

}  // namespace

ObjectView object_at(std::uintptr_t address) noexcept {
  constexpr int kTries = 4;  // libraries come and go meanwhile
  const ErrnoKeeper keeper;
  const LockGuard guard(g_lock);
  if (!guard) return {};
  Wanted wanted{address, false, {}};
  for (int i = 0; i < kTries && !wanted.fresh; ++i) {
    if (i > 0 || g_cache.count == 0) refresh();
    each_of_linker(find_wanted, &wanted);
  }
  return wanted.found;
}

FileFacts facts_of_file(std::uint32_t identity) noexcept {
  const LockGuard guard(g_lock);
  if (!guard || identity == 0 || identity > g_identity_count) return {};
  const Identity& known = g_identities[identity - 1];
  return {known.path, to_hex(bytes_of({known.build_id, known.build_id_size}))};
}

std::uint32_t identity_of_file(std::string_view path) noexcept {
  const ErrnoKeeper keeper;
  const LockGuard guard(g_lock);
  std::string_view kept;
  return guard && !path.empty() ? identify(path, {}, kept) : 0;
}

namespace {

struct Visitor {
  bool (*visit)(void*, const ObjectView&);
  void* context;
  bool first = true;
};
int visit_mapped(dl_phdr_info* info, std::size_t, void* context) {
  auto& visitor = *static_cast<Visitor*>(context);
  ObjectView view;
  view.path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (visitor.first) view.path = executable_path();
  visitor.first = false;
  if (view.path.empty() || view.path.starts_with("linux-")) return 0;
  view.elf = LoadedElf(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum);
  view.identity = kMaxIdentities;
  return visitor.visit(visitor.context, view) ? 0 : 1;
}

int take_unloads(dl_phdr_info* info, std::size_t, void* context) {
  *static_cast<std::uint64_t*>(context) = info->dlpi_subs;
  return 1;
}

}  // namespace

void each_mapped(bool (*visit)(void*, const ObjectView&), void* context) noexcept {
  const ErrnoKeeper keeper;
  Visitor visitor{visit, context};
  each_of_linker(visit_mapped, &visitor);
}

std::uint64_t unload_count() noexcept {
  std::uint64_t count = 0;
  each_of_linker(take_unloads, &count);
  return count;
}

void each_object(bool (*visit)(void*, const ObjectView&), void* context) noexcept {
  const ErrnoKeeper keeper;
  for (std::size_t i = 0;; ++i) {
    ObjectView view;
    {
      const LockGuard guard(g_lock);
      if (!guard) return;
      if (i == 0) refresh();
      if (i >= g_cache.count) return;
      view = g_cache.objects[i];
    }
    if (!visit(context, view)) return;
  }
}

bool is_shim(std::uintptr_t address) noexcept {
  return address >= reinterpret_cast<std::uintptr_t>(__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(_end);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "track/bypass.h"

#include <link.h>

#include "cuda/cuda_libraries.h"
#include "cuda/hooks.h"
#include "cuda/next_symbol.h"
#include "guest/signals.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "process/link_map.h"
#include "process/loaded_objects.h"
#include "report/stderr_log.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

// What is reported of one process: enough to name who did it.
constexpr std::size_t kMostFiles = 16;
constexpr std::size_t kMostNames = 8;
constexpr std::string_view kDeepbind = "deepbind";
constexpr std::string_view kNamespace = "namespace";

struct Bypass {
  PathText path;
  std::string_view how;
  std::string_view names[kMostNames];  // of hooks.def, or dlsym and dlvsym
  std::size_t name_count = 0;
  // What was among them: functions of the driver, functions of a runtime, the means to find some.
  bool driver = false;
  bool runtime = false;
  bool lookup = false;
};
struct Found {
  std::size_t count = 0;
  Bypass files[kMostFiles];

  void add(const Bypass& file) noexcept {
    if (count < kMostFiles) files[count++] = file;
  }
};
Found* g_found = nullptr;  // mapped for the one thread that exits

constexpr std::string_view kLookups[] = {"dlsym", "dlvsym"};

bool is_lookup(std::string_view name) noexcept { return name == kLookups[0] || name == kLookups[1]; }

std::string_view listed(std::string_view name) noexcept {
  for (const std::string_view lookup : kLookups)
    if (name == lookup) return lookup;
  const std::size_t row = find_hook(name);
  return row == kHookCount ? std::string_view() : kHooks[row].name;
}

// "cu..." and "__cuda..." first: most names are neither, and a hash of each costs more.
bool is_interposed(std::string_view name) noexcept {
  if (is_lookup(name)) return true;
  return (name.starts_with("cu") || name.starts_with("__cuda")) && find_hook(name) != kHookCount;
}

/// Whose code `address` is, seen from the shim in link order.
struct Place {
  std::uintptr_t address;
  bool after_shim = false;
  bool found = false;
  bool watched_runtime = false;
};
bool find_place(void* context, const ObjectView& object) {
  auto& place = *static_cast<Place*>(context);
  if (is_shim(object.elf.high() - 1)) place.after_shim = true;
  place.found = object.elf.contains(place.address);
  for (std::size_t i = 0; i < kRuntimeCount && place.found; ++i)
    place.watched_runtime = place.watched_runtime || is_runtime(object.elf, static_cast<Runtime>(i));
  return !place.found;
}

struct Bindings {
  const ObjectView& object;
  Bypass bypass;
};

// The search for a symbol that the shim defines never gets past it, unless it began somewhere else. What is
// bound to an object before the shim belongs to another tool, which asks for its next.
bool visit_binding(void* context, std::string_view name, std::uintptr_t address) {
  auto& bindings = *static_cast<Bindings*>(context);
  if (address == 0 || is_shim(address) || bindings.object.elf.contains(address)) return true;
  Place place{address};
  each_mapped(find_place, &place);
  if (!place.found || !place.after_shim) return true;
  Bypass& bypass = bindings.bypass;
  const std::string_view known = listed(name);
  const bool runtime = !is_lookup(name) && kHooks[find_hook(name)].layer == Layer::runtime;
  // A runtime before 11: its references carry a version that the shim has no definition of.
  if (runtime && !place.watched_runtime) return true;
  (is_lookup(name) ? bypass.lookup : runtime ? bypass.runtime : bypass.driver) = true;
  if (bypass.name_count < kMostNames) bypass.names[bypass.name_count++] = known;
  return true;
}

/// Whether a file that finds functions by itself means CUDA's: a static runtime and most other clients name
/// the driver's file. Searched by code of our own: a sanitizer's memmem would not like what is between a
/// library's variables.
bool names_driver(const ObjectView& object) noexcept {
  constexpr std::string_view kDriver = "libcuda.so";
  constexpr std::size_t kMost = std::size_t{32} << 20U;  // text and constants come before device code
  for (std::uintptr_t at = object.elf.low(); at < object.elf.high();) {
    const Bytes bytes = object.elf.bytes_from(at);
    if (bytes.empty()) {
      at = (at | 0xfffU) + 1;
      continue;
    }
    if (text_of(bytes).substr(0, kMost).find(kDriver) != std::string_view::npos) return true;
    at += bytes.size();
  }
  return false;
}

bool visit_object(void* context, const ObjectView& object) {
  auto& found = *static_cast<Found*>(context);
  if (is_shim(object.elf.high() - 1) || is_driver_file(object.path)) return true;
  Bindings bindings{object, {}};
  object.elf.each_binding(is_interposed, visit_binding, &bindings);
  Bypass& bypass = bindings.bypass;
  if (bypass.lookup && !bypass.driver && !bypass.runtime) bypass.lookup = names_driver(object);
  if (!bypass.lookup && !bypass.driver && !bypass.runtime) return true;
  bypass.path << object.path;
  bypass.how = kDeepbind;
  found.add(bypass);
  return true;
}

/// Who calls a shared runtime past the shim is still seen where that runtime itself is not past it.
void drop_watched(Found& found) noexcept {
  bool runtime = false;
  for (std::size_t i = 0; i < found.count; ++i)
    runtime = runtime || (found.files[i].lookup && is_shared_runtime(found.files[i].path.view()));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < found.count; ++i)
    if (runtime || found.files[i].how == kNamespace || found.files[i].driver || found.files[i].lookup)
      found.files[kept++] = found.files[i];
  found.count = kept;
}

std::string_view name_of(const link_map& map) noexcept {
  return map.l_name == nullptr ? std::string_view() : std::string_view(map.l_name);
}

bool is_system_library(std::string_view path) noexcept {
  constexpr std::string_view kNames[] = {"libc.so.", "libm.so.", "libstdc++.so.", "libgcc_s.so.", "ld-linux"};
  for (const std::string_view name : kNames)
    if (base_name(path).starts_with(name)) return true;
  return false;
}

// Other namespaces: dl_iterate_phdr shows the caller's alone, ld.so's list for debuggers all of them (glibc
// 2.35, struct r_debug_extended). Called where that lock is held under which the lists change.
void visit_namespaces(Found& found) noexcept {
  const r_debug* debug = linker_debug();
  if (debug == nullptr || debug->r_version < 2) return;
  struct Extended {
    r_debug base;
    const Extended* next;
  };
  for (const auto* space = reinterpret_cast<const Extended*>(debug)->next; space != nullptr;
       space = space->next) {
    // An auditor has a namespace, too, and no driver in it. The first there is what dlmopen was asked for,
    // or, once that is unloaded, what stayed behind.
    std::string_view driver;
    std::string_view first;
    for (const link_map* map = space->base.r_map; map != nullptr; map = map->l_next) {
      if (base_name(name_of(*map)).starts_with("libcuda.so")) driver = name_of(*map);
      if (first.empty() && !is_system_library(name_of(*map))) first = name_of(*map);
    }
    if (driver.empty()) continue;
    Bypass bypass;
    bypass.path << first;
    bypass.how = kNamespace;
    found.add(bypass);
  }
}

struct Look {
  bool first = true;
  bool driver = false;
};

// Names alone, as every process pays for it at its end.
int look(dl_phdr_info* info, std::size_t, void* context) {
  auto& look = *static_cast<Look*>(context);
  if (look.first) visit_namespaces(*g_found);
  look.first = false;
  look.driver = info->dlpi_name != nullptr && base_name(info->dlpi_name).starts_with("libcuda.so");
  return look.driver ? 1 : 0;
}

void write(Report& report, const Bypass& bypass) noexcept {
  report.write<RecordType::bypass>([&](auto& record) {
    record.template add<Field::bypass_path>(bypass.path.view());
    record.template add<Field::bypass_how>(bypass.how);
    record.template add<Field::bypass_names>(std::span(bypass.names, bypass.name_count));
  });
  PathText line;
  line << bypass.path.view()
       << (bypass.how == kDeepbind ? " was loaded with RTLD_DEEPBIND" : " was loaded with dlmopen")
       << ": its calls to CUDA were not seen";
  say(LogLevel::info, line.view());
}

}  // namespace

bool find_bypasses() noexcept {
  g_found = static_cast<Found*>(raw::map_memory(sizeof(Found)));
  if (g_found == nullptr) return false;
  Look found;
  each_of_linker(look, &found);
  if (found.driver) {
    each_mapped(visit_object, g_found);
    drop_watched(*g_found);
  }
  return g_found->count != 0;
}

void write_bypasses(Report& report, ObjectRecords& objects) noexcept {
  if (g_found == nullptr || report.begin() == 0) return;
  objects.announce_libraries(report);
  for (std::size_t i = 0; i < g_found->count; ++i) write(report, g_found->files[i]);
}

}  // namespace kshim::shim

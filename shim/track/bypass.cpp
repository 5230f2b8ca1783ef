// SPDX-License-Identifier: Apache-2.0
#include "track/bypass.h"

#include <link.h>

#include <algorithm>

#include "cuda/cuda_libraries.h"
#include "cuda/driver_table.h"
#include "cuda/hooks.h"
#include "cuda/real_functions.h"
#include "guest/clock.h"
#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "process/link_map.h"
#include "process/loaded_objects.h"
#include "process/scattered_read.h"
#include "report/stderr_log.h"
#include "track/object_records.h"

namespace kshim::shim {
namespace {

using report::Field;
using report::RecordType;

// Limits for one process: enough to name the files.
constexpr std::size_t kMaxFiles = 16;
constexpr std::size_t kMaxNames = 8;
// What an exit may cost: guarded reads of tables (a few microseconds each; one large file does not use up
// what there is for the others) and bytes that are searched for the driver's name, in all about 50 ms of
// work; and time, which a loaded machine may give to others. Few files are searched: those with a look-up
// function that is bound past the shim.
constexpr std::uint64_t kMaxTime = 500'000'000;  // nanoseconds
constexpr std::size_t kMaxReads = 8192;
constexpr std::size_t kMaxReadsOfFile = 1024;
constexpr std::size_t kMaxSearched = std::size_t{64} << 20U;
constexpr std::string_view kDeepbind = "deepbind";
constexpr std::string_view kNamespace = "namespace";
constexpr std::string_view kTable = "table";

struct Bypass {
  PathText path;
  std::string_view how;
  std::string_view names[kMaxNames];  // of hooks.def, or dlsym and dlvsym
  std::size_t name_count = 0;
  // Which kinds were among them: functions of the driver, of a runtime, means to look functions up.
  bool driver = false;
  bool runtime = false;
  bool lookup = false;
};
struct Found {
  std::size_t count = 0;
  Bypass files[kMaxFiles];

  void add(const Bypass& file) noexcept {
    if (count < kMaxFiles) files[count++] = file;
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

struct Bindings {
  const LoadedObject& object;
  const LoadedObject& shim;
  PageCache& pages;
  Bypass bypass;
};

/// Whether the search for a symbol passes the shim before it gets there.
bool is_after_shim(const LoadedObject& object, const LoadedObject& shim) noexcept {
  return !object.at_start || object.mapping_id > shim.mapping_id;
}

bool is_watched_runtime(const LoadedElf& elf) noexcept {
  for (std::size_t i = 0; i < kRuntimeCount; ++i)
    if (is_runtime(elf, static_cast<Runtime>(i))) return true;
  return false;
}

// A binding to an object behind the shim means that the search for the symbol did not begin with the global
// scope (RTLD_DEEPBIND). What is bound to an object before the shim belongs to another tool, which asks for
// its next.
bool visit_binding(void* context, std::string_view name, std::uintptr_t /*slot*/, std::uintptr_t address) {
  auto& bindings = *static_cast<Bindings*>(context);
  if (address == 0 || is_shim(address) || bindings.object.elf.contains(address)) return true;
  const LoadedObject target = find_loaded_object(address);
  if (!target || !is_after_shim(target, bindings.shim)) return true;
  Bypass& bypass = bindings.bypass;
  const std::string_view known = listed(name);
  const bool runtime = !is_lookup(name) && kHooks[find_hook(name)].layer == Layer::runtime;
  // A runtime before 11: its references carry a version that the shim has no definition of.
  if (runtime && !is_watched_runtime(target.elf.through(bindings.pages))) return true;
  (is_lookup(name) ? bypass.lookup : runtime ? bypass.runtime : bypass.driver) = true;
  if (bypass.name_count < kMaxNames) bypass.names[bypass.name_count++] = known;
  return true;
}

struct Look {
  LoadedObject shim;
  PageCache pages;
  Found& found;
  std::uint64_t end;  ///< by now_nanoseconds()
  std::size_t reads = kMaxReads;
  std::size_t searched = 0;
};

/// Whether a file that finds functions by itself means CUDA's: a static runtime and most other clients have
/// the name of the driver's file. Reads constants first.
bool names_driver(const LoadedElf& elf, Look& look) noexcept {
  constexpr std::string_view kDriver = "libcuda.so";
  char chunk[16384];
  bool found = false;
  for (const bool code : {false, true})
    elf.each_segment([&](std::uintptr_t start, std::uintptr_t end) {
      if (elf.is_code(start) != code || elf.is_writable(start)) return;
      // A name may lie across the end of a chunk.
      for (std::uintptr_t at = start; !found && at < end && look.searched < kMaxSearched;
           at += sizeof chunk - kDriver.size()) {
        const std::size_t size = std::min(std::size_t{end - at}, sizeof chunk);
        look.searched += size;
        if (now_nanoseconds() >= look.end || !elf.copy(at, chunk, size)) break;
        found = std::string_view(chunk, size).find(kDriver) != std::string_view::npos;
        if (size < sizeof chunk) break;
      }
    });
  return found;
}

bool visit_object(void* context, const LoadedObject& object) {
  auto& look = *static_cast<Look*>(context);
  // What was mapped at the start is bound through the global scope, in which the shim comes first.
  if (object.at_start || is_shim(object.elf.base()) || is_driver_file(object)) return true;
  Bindings bindings{object, look.shim, look.pages, {}};
  const std::size_t reads = std::min(look.reads, kMaxReadsOfFile);
  look.pages.allow(reads);
  object.elf.through(look.pages).each_binding(is_interposed, visit_binding, &bindings);
  look.reads -= reads - look.pages.allowed();
  Bypass& bypass = bindings.bypass;
  if (bypass.lookup && !bypass.driver && !bypass.runtime) bypass.lookup = names_driver(object.elf, look);
  if (!bypass.lookup && !bypass.driver && !bypass.runtime) return look.reads != 0;
  bypass.path << object.path;
  bypass.how = kDeepbind;
  look.found.add(bypass);
  return look.reads != 0;
}

/// Calls of a shared runtime that bypass the shim are still seen if that runtime's driver calls do not.
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

bool is_system_library(std::string_view path) noexcept {
  constexpr std::string_view kNames[] = {"libc.so.", "libm.so.", "libstdc++.so.", "libgcc_s.so.", "ld-linux"};
  for (const std::string_view name : kNames)
    if (base_name(path).starts_with(name)) return true;
  return false;
}

bool has_namespaces() noexcept {
  const r_debug* debug = process_r_debug();
  return debug != nullptr && debug->r_version >= 2;
}

// The dynamic linker's list for debuggers has all namespaces (glibc 2.35, struct r_debug_extended).
void visit_namespaces(Found& found) noexcept {
  if (!has_namespaces()) return;
  struct Extended {
    r_debug base;
    const Extended* next;
  };
  constexpr int kMaxNamespaces = 64;
  Extended space;
  if (!read_memory(reinterpret_cast<std::uintptr_t>(process_r_debug()), &space, sizeof space)) return;
  for (int i = 0; i < kMaxNamespaces && space.next != nullptr; ++i) {
    if (!read_memory(reinterpret_cast<std::uintptr_t>(space.next), &space, sizeof space)) return;
    // An auditor has a namespace, too, and no driver in it. The first file is what dlmopen was asked for, or,
    // once that is unloaded, what stayed behind.
    bool driver = false;
    bool broken = false;
    Bypass bypass;
    MapNode node;
    for (bool more = read_node(space.base.r_map, node); more; more = next_node(node, broken)) {
      char name[1024];
      if (!read_name(node, name, sizeof name)) continue;
      driver = driver || names_libcuda(name);
      if (bypass.path.empty() && !is_system_library(name)) bypass.path << std::string_view(name);
    }
    if (!driver) continue;
    bypass.how = kNamespace;
    found.add(bypass);
  }
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
  log_line(LogLevel::info, line.view());
}

bool is_driver_mapped() noexcept {
  bool found = false;
  for_each_name_at_end(
      [](void* context, std::string_view name) {
        return !(*static_cast<bool*>(context) = names_libcuda(name));
      },
      &found);
  return found;
}

}  // namespace

void write_unwatched_runtime(const Locked& /*locked*/, Report& report) noexcept {
  static std::uint32_t g_written = 0;  // the number of the report that has it
  const std::uint32_t runtime = unwatched_runtime();
  if (runtime == 0 || current_report() == 0 || g_written == current_report()) return;
  g_written = current_report();
  report.write<RecordType::bypass>([&](auto& record) {
    constexpr std::string_view kAsked[] = {row_of(Hook::cuGetExportTable).name};
    record.template add<Field::bypass_path>(file_of_identity(runtime).path);
    record.template add<Field::bypass_how>(kTable);
    record.template add<Field::bypass_names>(std::span(kAsked));
  });
}

bool may_be_bypassed() noexcept { return has_namespaces() || is_driver_mapped(); }

bool find_bypasses(bool driver) noexcept {
  g_found = static_cast<Found*>(raw::map_memory(sizeof(Found)));
  if (g_found == nullptr) return false;
  visit_namespaces(*g_found);
  if (driver || is_driver_mapped()) {
    const std::uint64_t end = now_nanoseconds() + kMaxTime;
    Look look{find_loaded_object(&g_found), {}, *g_found, end};
    for_each_loaded_object(visit_object, &look, {.end = end});
    drop_watched(*g_found);
  }
  return g_found->count != 0;
}

void write_bypasses(Report& report, ObjectRecords& objects) noexcept {
  if (g_found == nullptr || report.begin() == 0) return;
  objects.announce_known_libraries(report);
  for (std::size_t i = 0; i < g_found->count; ++i) write(report, g_found->files[i]);
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
#include "process/link_map.h"

#include <elf.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>

#include "guest/auxiliary_vector.h"
#include "guest/own_file.h"
#include "guest/safe_memory.h"
#include "guest/syscalls.h"
#include "guest/text_buffer.h"
#include "kshim/base/hash.h"
#include "process/scattered_read.h"

// Set by the static linker: where this library begins in memory.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];

// Weak references: glibc has the first name (link.h), musl the second.
[[gnu::weak]] extern r_debug _r_debug;
extern "C" [[gnu::weak]] r_debug* _dl_debug_addr;
namespace kshim::shim {
namespace {

std::atomic<const link_map*> g_last_at_start{nullptr};
std::atomic<std::size_t> g_count_at_start{0};
std::atomic<FindByLinker> g_find_by_linker{nullptr};
void* g_last_dynamic_at_start = nullptr;

/// Whether the last node of the start is still in use and the last one. An earlier constructor may have
/// opened its file, so it may be gone.
bool ends_as_at_start() noexcept {
  const link_map* const last = last_map_at_start();
  const FindByLinker find = linkers_look_up();
  FoundByLinker found{};
  return last != nullptr && find != nullptr && find(g_last_dynamic_at_start, &found) == 0 &&
         found.map == last && last->l_next == nullptr;
}

const r_debug* find_r_debug() noexcept {
  if (const r_debug* own = &_r_debug; own != nullptr && own->r_map != nullptr) return own;
  if (r_debug** own = &_dl_debug_addr; own != nullptr && *own != nullptr && (*own)->r_map != nullptr)
    return *own;
  return nullptr;
}

}  // namespace

// Called before all else, even from a host's own getauxval that looks up the next one: calls no function of
// libc.
const r_debug* process_r_debug() noexcept {
  static std::atomic<const r_debug*> g_found{nullptr};  // the dynamic linker's own stays where it is
  const r_debug* found = g_found.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = find_r_debug();
    g_found.store(found, std::memory_order_relaxed);
  }
  return found;
}

const link_map* link_map_head() noexcept {
  const r_debug* debug = process_r_debug();
  return debug == nullptr ? nullptr : debug->r_map;
}

FindByLinker linkers_look_up() noexcept { return g_find_by_linker.load(std::memory_order_relaxed); }

const link_map* last_map_at_start() noexcept { return g_last_at_start.load(std::memory_order_relaxed); }

std::size_t map_count_at_start() noexcept { return g_count_at_start.load(std::memory_order_relaxed); }

bool read_node(const link_map* address, MapNode& out) noexcept {
  out.address = address;
  if (address != nullptr && read_memory(reinterpret_cast<std::uintptr_t>(address), &out.map, sizeof out.map))
    return true;
  out.address = nullptr;
  return false;
}

bool next_node(MapNode& node, bool& broken) noexcept {
  const link_map* const here = node.address;
  const link_map* const next = node.map.l_next;
  broken = false;
  if (next == nullptr) {
    node.address = nullptr;
    return false;
  }
  broken = !read_node(next, node) || node.map.l_prev != here;
  if (broken) node.address = nullptr;
  return !broken;
}

bool read_name(const MapNode& node, char* to, std::size_t room) noexcept {
  constexpr std::size_t kPage = 4096;
  const auto from = reinterpret_cast<std::uintptr_t>(node.map.l_name);
  to[0] = 0;
  if (from == 0) return true;
  for (std::size_t done = 0; done + 1 < room;) {
    // A read stays within a page: the next one may be unmapped.
    const std::size_t part = std::min({room - done, std::size_t{256}, kPage - (from + done) % kPage});
    if (!read_memory(from + done, to + done, part)) return false;
    if (std::memchr(to + done, 0, part) != nullptr) return true;
    done += part;
  }
  return false;
}

void for_each_name_at_end(bool (*visit)(void*, std::string_view), void* context) noexcept {
  if (ends_as_at_start()) {
    const link_map* const last = last_map_at_start();
    for (const link_map* map = link_map_head(); map != nullptr; map = map == last ? nullptr : map->l_next)
      if (map->l_name != nullptr && !visit(context, map->l_name)) return;
    return;
  }
  char name[512];
  MapNode node;
  bool broken = false;
  for (bool more = read_node(link_map_head(), node); more; more = next_node(node, broken))
    if (read_name(node, name, sizeof name) && !visit(context, name)) return;
}

// Another library may have the memory of a node that is gone.
ListMark mark_of(const MapNode& node) noexcept {
  char name[512];
  if (!node || !read_name(node, name, sizeof name)) return {};
  const void* const parts[] = {node.address, node.map.l_ld, node.map.l_name, node.map.l_prev,
                               reinterpret_cast<const void*>(node.map.l_addr)};
  return {node.address,
          key_hash(std::as_bytes(std::span(parts)), content_hash(bytes_of(std::string_view(name))))};
}

ListMark mark_end_of_list() noexcept {
  MapNode node;
  MapNode last;
  bool broken = false;
  for (bool more = read_node(link_map_head(), node); more; more = next_node(node, broken)) last = node;
  return broken ? ListMark() : mark_of(last);
}

bool find_marked(const ListMark& mark, MapNode& out) noexcept {
  return mark.hash != 0 && read_node(mark.node, out) && mark_of(out).hash == mark.hash;
}

namespace {

/// Whether all of them are known now.
bool look_into(const LoadedElf& elf, std::span<NextFunction> functions) noexcept {
  bool all = true;
  for (NextFunction& function : functions) {
    const std::uint32_t hash = gnu_hash(function.name);
    if (function.address == nullptr)
      function.address = function.libcs ? elf.find_function(function.name, hash, function.version)
                                        : elf.find_linked(function.name, hash, function.version);
    all = all && function.address != nullptr;
  }
  return all;
}

}  // namespace

void find_after_shim(std::span<NextFunction> functions) noexcept {
  if (last_map_at_start() == nullptr) return find_after_shim_at_start(functions);
  MapNode node;
  bool broken = false;
  bool after_shim = false;
  for (bool more = read_node(link_map_head(), node); more; more = next_node(node, broken)) {
    char path[512];
    if (!read_name(node, path, sizeof path)) path[0] = 0;  // the headers are in memory as a rule
    if (after_shim && look_into(read_elf(node, path, nullptr), functions)) return;
    after_shim = after_shim || node.map.l_ld == _DYNAMIC;
  }
}

namespace {

struct Headers {
  static constexpr std::size_t kMax = 32;
  ElfW(Phdr) rows[kMax];
  std::size_t count = 0;

  /// Whether they are those of the file with this dynamic section.
  bool match(const link_map& map) const noexcept {
    for (std::size_t i = 0; i < count; ++i)
      if (rows[i].p_type == PT_DYNAMIC)
        return map.l_addr + rows[i].p_vaddr == reinterpret_cast<std::uintptr_t>(map.l_ld);
    return false;
  }
};

bool is_elf(const ElfW(Ehdr) & file) noexcept {
  return std::memcmp(file.e_ident, ELFMAG, SELFMAG) == 0 && file.e_phentsize == sizeof(ElfW(Phdr)) &&
         file.e_phnum <= Headers::kMax;
}

/// A library begins with its ELF header, at address 0 of its own.
bool headers_in_memory(const link_map& map, PageCache* pages, Headers& out) noexcept {
  const auto read = [pages](std::uintptr_t from, void* to, std::size_t size) {
    return pages != nullptr ? pages->read(from, to, size) : read_memory(from, to, size);
  };
  ElfW(Ehdr) file;
  if (map.l_addr == 0 || !read(map.l_addr, &file, sizeof file) || !is_elf(file)) return false;
  out.count = file.e_phnum;
  return read(map.l_addr + file.e_phoff, out.rows, out.count * sizeof out.rows[0]) && out.match(map);
}

bool headers_of_program(const link_map& map, Headers& out) noexcept {
  out.count = std::min<std::size_t>(auxiliary_value(AT_PHNUM), Headers::kMax);
  return read_memory(auxiliary_value(AT_PHDR), out.rows, out.count * sizeof out.rows[0]) && out.match(map);
}

/// patchelf, as auditwheel uses it, moves the headers to where the file's offset is not the address.
bool headers_in_file(const link_map& map, const char* name, Headers& out) noexcept {
  if (name[0] != '/') return false;
  const OwnFile file = open_regular_file(name);
  ElfW(Ehdr) header;
  if (file.read(0, &header, sizeof header) != sizeof header || !is_elf(header)) return false;
  out.count = header.e_phnum;
  const std::size_t size = out.count * sizeof out.rows[0];
  return file.read(header.e_phoff, out.rows, size) == size && out.match(map);
}

}  // namespace

LoadedElf read_elf(const MapNode& node, const char* name, PageCache* pages) noexcept {
  Headers headers;
  if (!headers_in_memory(node.map, pages, headers) && !headers_of_program(node.map, headers) &&
      !headers_in_file(node.map, name, headers))
    return {};
  const bool own = node.map.l_addr == reinterpret_cast<std::uintptr_t>(__ehdr_start);
  return {node.map.l_addr, headers.rows, headers.count,
          own ? LoadedElf::Access::direct : LoadedElf::Access::guarded, pages};
}

namespace {

/// A file as the linker itself uses it: by its dynamic section, and without bounds.
LoadedElf trusted_elf(const link_map& map) noexcept {
  std::size_t rows = 0;
  while (map.l_ld[rows].d_tag != DT_NULL) ++rows;
  ElfW(Phdr) headers[2] = {};
  headers[0].p_type = PT_LOAD;
  headers[0].p_flags = PF_R;
  headers[0].p_memsz = ~map.l_addr;
  headers[1].p_type = PT_DYNAMIC;
  headers[1].p_vaddr = reinterpret_cast<std::uintptr_t>(map.l_ld) - map.l_addr;
  headers[1].p_memsz = rows * sizeof map.l_ld[0];
  return {map.l_addr, headers, std::size(headers), LoadedElf::Access::direct};
}

bool is_valgrinds(const link_map& map) noexcept {
  return map.l_name != nullptr && base_name(map.l_name).starts_with("vgpreload_");
}

[[gnu::constructor]] void note_start() {
  const link_map* last = nullptr;
  std::size_t count = 0;
  for (const link_map* map = link_map_head(); map != nullptr; map = map->l_next) {
    if (is_valgrinds(*map)) never_ask_for_pages();
    last = map;
    ++count;
  }
  if (last != nullptr) g_last_dynamic_at_start = last->l_ld;
  NextFunction find[] = {{.name = "_dl_find_object", .version = "GLIBC_2.35"}};
  find_after_shim_at_start(find);
  g_find_by_linker.store(reinterpret_cast<FindByLinker>(find[0].address));
  g_count_at_start.store(count, std::memory_order_relaxed);
  g_last_at_start.store(last, std::memory_order_relaxed);
}

}  // namespace

void find_after_shim_at_start(std::span<NextFunction> functions) noexcept {
  bool after_shim = false;
  for (const link_map* map = link_map_head(); map != nullptr; map = map->l_next) {
    if (after_shim && look_into(trusted_elf(*map), functions)) return;
    after_shim = after_shim || map->l_ld == _DYNAMIC;
  }
}

void each_library_at_start(void (*visit)(const LoadedElf& elf)) noexcept {
  for (const link_map* map = link_map_head(); map != nullptr; map = map->l_next)
    if (map != link_map_head() && map->l_ld != _DYNAMIC) visit(trusted_elf(*map));
}

}  // namespace kshim::shim

// SPDX-License-Identifier: Apache-2.0
// The dynamic linker's list of loaded objects, which it keeps for debuggers (struct r_debug). It is read
// without the linker's lock: each node is copied by a guarded read and checked against its neighbor; a list
// that changes meanwhile is read again.
#pragma once
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "process/loaded_elf.h"

namespace kshim::shim {

/// glibc's struct dl_find_object (2.35 and later), which older headers lack.
struct FoundByLinker {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  const link_map* map;
  void* eh_frame;
  unsigned long long reserved[11];
};
/// _dl_find_object, which takes no lock and makes no system call: 0 where a file holds the address.
using FindByLinker = int (*)(void* address, FoundByLinker* result);

/// nullptr where there is none, and before our constructor ran.
FindByLinker linkers_look_up() noexcept;

/// nullptr where the program has none. Available before constructors run.
const r_debug* process_r_debug() noexcept;
/// The first node of our namespace, which is the program's; nullptr where there is none.
const link_map* link_map_head() noexcept;
/// The node is the last one that was in the list when our constructor ran; nullptr before.
const link_map* last_map_at_start() noexcept;
/// How many nodes there were then.
std::size_t map_count_at_start() noexcept;

/// A copy of a node, and where it came from.
struct MapNode {
  const link_map* address = nullptr;
  link_map map = {};
  explicit operator bool() const noexcept { return address != nullptr; }
};
/// False where it cannot be read.
bool read_node(const link_map* address, MapNode& out) noexcept;
/// Moves on to the next node. False at the end of the list, or when the list changed in between (`broken`).
bool next_node(MapNode& node, bool& broken) noexcept;
/// The name that the linker gives it: a path, or empty for the program. False where it cannot be read.
bool read_name(const MapNode& node, char* to, std::size_t room) noexcept;
/// Calls visit(context, name) for the name of each node until it answers false. For the library's destructor:
/// while it runs, the linker keeps all files that were mapped before. Makes no system call if the C library
/// has _dl_find_object and the last file is the one of the start.
void for_each_name_at_end(bool (*visit)(void* context, std::string_view name), void* context) noexcept;
/// A node by which the list can be read from there on, as long as its library is loaded.
struct ListMark {
  const link_map* node = nullptr;
  std::uint64_t hash = 0;  ///< of the node, by which it is known again; 0 = none
};
ListMark mark_of(const MapNode& node) noexcept;
/// Marks the last node: a library that is loaded later comes behind it.
ListMark mark_end_of_list() noexcept;
/// False where the node is no longer as it was. The memory of a library that is gone may keep its contents.
bool find_marked(const ListMark& mark, MapNode& out) noexcept;
/// The version of libc's oldest functions.
#if defined(__x86_64__)
constexpr std::string_view kFirstVersion = "GLIBC_2.2.5";
#elif defined(__aarch64__)
constexpr std::string_view kFirstVersion = "GLIBC_2.17";
#endif
/// A function of libc's, and the next definition of it after the shim in link order: libc's, or another
/// preload's. Another library may have a function of that name with a version of its own.
struct NextFunction {
  std::string_view name;
  std::string_view version = kFirstVersion;
  bool libcs = false;  ///< no definition without a version: none of another preload's
  void* address = nullptr;
};
/// Finds them among the libraries that the process started with. Available before constructors run. Takes
/// 4 KiB of stack.
void find_after_shim(std::span<NextFunction> functions) noexcept;
/// The same in a constructor, where nothing changes the list. Makes no system call.
void find_after_shim_at_start(std::span<NextFunction> functions) noexcept;
/// Calls visit(elf) for each library that the process started with but the shim. In a constructor: makes no
/// system call.
void each_library_at_start(void (*visit)(const LoadedElf& elf)) noexcept;
/// Headers and tables of the file. One without a segment when its headers are not where they belong.
/// `pages`: what is read through, or nullptr.
LoadedElf read_elf(const MapNode& node, const char* name, PageCache* pages) noexcept;

}  // namespace kshim::shim

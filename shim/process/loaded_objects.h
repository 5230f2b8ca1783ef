// SPDX-License-Identifier: Apache-2.0
// Finds the loaded file that holds an address, by _dl_find_object (glibc 2.35 and later), else by the dynamic
// linker's list (link_map.h), without taking the linker's lock. What was read of a file is kept, and verified
// before each use, so a library is never mistaken for one that was mapped at the same address before.
#pragma once
#include <cstdint>
#include <string_view>

#include "guest/text_buffer.h"
#include "process/loaded_elf.h"

namespace kshim::shim {

/// A copy of what is known of a loaded file. Its texts stay valid after dlclose; `elf` reads the file's
/// memory by guarded reads.
struct LoadedObject {
  std::string_view path;    ///< absolute, kept forever; empty for the vdso
  std::string_view soname;  ///< kept forever; empty when it has none
  LoadedElf elf;
  BuildId build_id;
  std::uint32_t identity = 0;    ///< number of the file: the same when it is mapped again; 0 = none
  std::uint64_t mapping_id = 0;  ///< number of this mapping: never used again. Grows in link order
  bool at_start = false;  ///< mapped when the process started, so what it defines is in the global scope
  explicit operator bool() const noexcept { return mapping_id != 0; }
  /// The link-time virtual address that `address` has in the file.
  std::uint64_t offset_of(std::uintptr_t address) const noexcept { return address - elf.base(); }
};

/// The object that holds `address`, or a false one (heap, stack, JIT code, vdso).
LoadedObject find_loaded_object(std::uintptr_t address) noexcept;
inline LoadedObject find_loaded_object(const void* address) noexcept {
  return find_loaded_object(reinterpret_cast<std::uintptr_t>(address));
}
/// The same for an address that this thread is using: its caller's, or the result of a look-up. That object
/// cannot be unloaded meanwhile, so less is verified.
LoadedObject find_object_in_use(const void* address) noexcept;
inline LoadedObject find_object_in_use(std::uintptr_t address) noexcept {
  return find_object_in_use(reinterpret_cast<const void*>(address));
}
constexpr std::uint64_t kNoEnd = UINT64_MAX;
/// Which objects a list has.
struct ListPart {
  std::uint64_t after = 0;     ///< only those whose `mapping_id` is larger
  std::uint64_t end = kNoEnd;  ///< by now_nanoseconds(): the list is cut there
  bool known_only = false;  ///< those of the last list, in no order: the dynamic linker's is not read again
};
/// Calls visit(context, object) for each mapped file in link order until it answers false. No lock is held
/// meanwhile. Returns the largest `mapping_id` there is: what a later call may pass as `after`.
std::uint64_t for_each_loaded_object(bool (*visit)(void* context, const LoadedObject& object), void* context,
                                     const ListPart& part = {}) noexcept;
/// For tests: behaves from now on as with a C library that has no _dl_find_object.
void ignore_linkers_look_up() noexcept;

/// Identities are below this number. Files beyond have none: their frames have path and build id, and no
/// record refers to them.
constexpr std::uint32_t kMaxIdentities = 16384;
bool has_unnumbered_files() noexcept;
/// What an identity stands for, whether it is still mapped or not. Empty for 0.
struct FileInfo {
  std::string_view path;
  Text<40> build_id;
};
FileInfo file_of_identity(std::uint32_t identity) noexcept;
/// A mapped object with that identity, or a false one.
LoadedObject find_object_of_identity(std::uint32_t identity) noexcept;
/// The identity of a file that a program loads without mapping it as a library (a cubin, a fatbin). 0 = no
/// room.
std::uint32_t identity_of_file(std::string_view path) noexcept;

/// The shim itself.
bool is_shim(std::uintptr_t address) noexcept;
inline bool is_shim(const void* address) noexcept {
  return is_shim(reinterpret_cast<std::uintptr_t>(address));
}

/// The file that holds an address that this thread is using, for an unwinder: the vdso, too.
LoadedElf find_elf_in_use(std::uintptr_t address) noexcept;

}  // namespace kshim::shim

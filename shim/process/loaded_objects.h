// SPDX-License-Identifier: Apache-2.0
// Which mapped file an address lies in. The ranges are cached and trusted only while the dynamic linker's
// counters of loads and unloads stand still, so that a library mapped where another one was is never mistaken
// for it.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "guest/text_buffer.h"
#include "process/loaded_elf.h"

namespace kshim::shim {

/// A mapped file. Copied by value: nothing here but `elf` refers to memory that goes away with dlclose.
struct ObjectView {
  std::string_view path;  ///< absolute, kept for ever; empty for the vdso
  LoadedElf elf;
  std::string_view soname;     ///< kept for ever, too
  std::uint32_t identity = 0;  ///< same file mapped again: same number; 0 = none
  explicit operator bool() const noexcept { return identity != 0; }
  /// The link-time virtual address that `address` has in the file.
  std::uint64_t offset_of(std::uintptr_t address) const noexcept { return address - elf.base(); }
};

/// Identities are below this number.
constexpr std::uint32_t kMaxIdentities = 8192;
/// What an identity stands for, whether it is still mapped or not. Empty for 0.
struct FileFacts {
  std::string_view path;
  Text<40> build_id;
};
FileFacts facts_of_file(std::uint32_t identity) noexcept;
/// The identity of a file that a program loads without mapping it as a library (a cubin, a fatbin). 0 = no
/// room.
std::uint32_t identity_of_file(std::string_view path) noexcept;

/// The object that holds `address`, or a false one (heap, stack, JIT code).
ObjectView object_at(std::uintptr_t address) noexcept;
inline ObjectView object_at(const void* address) noexcept {
  return object_at(reinterpret_cast<std::uintptr_t>(address));
}
/// Calls visit(context, object) for every mapped file in link order until it answers false.
void each_object(bool (*visit)(void* context, const ObjectView& object), void* context) noexcept;
/// The same by the dynamic linker's own list and under its lock: nothing is unmapped while a visitor reads
/// it, and no table can be full. For finding what a program's call goes on to. Visitors read and return;
/// `path` is the linker's text and ends with the visit, `identity` says nothing but that there is an object.
void each_mapped(bool (*visit)(void* context, const ObjectView& object), void* context) noexcept;
/// How often libraries were unloaded until now: while it stands still, what was found is where it was.
std::uint64_t unload_count() noexcept;
/// The shim itself.
bool is_shim(std::uintptr_t address) noexcept;
inline bool is_shim(const void* address) noexcept {
  return is_shim(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace kshim::shim

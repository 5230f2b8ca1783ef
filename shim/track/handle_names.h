// SPDX-License-Identifier: Apache-2.0
// The name and the module of each handle. Filled when look-ups and loads succeed, read when a call fails. Of
// fixed size: new names replace the oldest ones, and a handle that the driver reuses gets its new meaning.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kshim::shim {

/// What a CUmodule, CUlibrary, CUfunction or CUkernel means.
struct HandleInfo {
  static constexpr std::size_t kMaxNameLength = 16384;  ///< longer ones are not kept
  std::uint64_t module = 0;                             ///< number of the load (modules.h); 0 = unknown
  std::string_view name{};                              ///< mangled; valid until the next one is remembered
};

/// A load is about to be unloaded: soon neither its handle nor those that were found in it mean anything.
/// Takes no lock: the next user of HandleNames forgets it. False where too many wait for that.
bool stage_unload(std::uintptr_t handle) noexcept;

/// Lies in zeroed memory.
class HandleNames {
 public:
  /// A load gave this handle. Like the next two: true where the handle meant something else before.
  bool remember_load(std::uintptr_t handle, std::uint64_t module) noexcept;
  /// `handle` is the function or the kernel of that name in `source`, a handle too; 0 = not known in which.
  bool remember_name(std::uintptr_t handle, std::string_view name, std::uintptr_t source) noexcept;
  /// `handle` means what `source` means.
  bool remember_alias(std::uintptr_t handle, std::uintptr_t source) noexcept;
  HandleInfo recall(std::uintptr_t handle) noexcept;
  /// Forgets the loads that were staged.
  void update() noexcept;

 private:
  static constexpr unsigned kSlotBits = 16;
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;
  static constexpr std::uint64_t kRing = std::uint64_t{3} << 20U;

  struct Slot {
    std::uintptr_t handle;
    std::uint64_t begin;   ///< of the name: how many bytes were written to the ring before it
    std::uint64_t length;  ///< 0 = no name
    std::uint64_t module;
    std::uintptr_t root;  ///< the handle that the load gave; 0 = not known
  };
  struct Table {
    Slot slots[kSlots];
    std::uint64_t written;  ///< bytes of names, ever
    char ring[kRing];
  };
  static std::size_t home_of(std::uintptr_t handle) noexcept;
  bool open() noexcept;
  const Slot* find(std::uintptr_t handle) const noexcept;
  Slot& acquire(std::uintptr_t handle) noexcept;
  const Slot* find_meaning(std::uintptr_t handle) const noexcept;
  std::string_view name_of(const Slot& slot) const noexcept;
  bool remember(std::uintptr_t handle, std::string_view name, std::uint64_t module,
                std::uintptr_t root) noexcept;

  Table* table_;  ///< mapped when the first handle is remembered
};

}  // namespace kshim::shim

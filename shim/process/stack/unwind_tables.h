// SPDX-License-Identifier: Apache-2.0
// Finds unwind tables for libunwind by the shim's own index of loaded objects: libunwind would ask the
// dynamic linker, which takes a lock.
#pragma once
#include <cstdint>

namespace kshim::shim {

struct UnwindTables {
  std::uintptr_t base = 0;    ///< load address
  std::uintptr_t low = 0;     ///< the object's lowest address
  std::uintptr_t high = 0;    ///< one past the highest; 0 = no object
  std::uintptr_t header = 0;  ///< .eh_frame_hdr; 0 = nothing describes the address
  std::uint64_t header_size = 0;
};

/// The tables of the object that holds a code address.
UnwindTables find_unwind_tables(std::uintptr_t address) noexcept;

}  // namespace kshim::shim

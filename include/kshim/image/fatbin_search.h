// SPDX-License-Identifier: Apache-2.0
// Device code outside of its own sections: libraries that load images themselves keep fatbins in .rodata,
// .ldata, .cask_resource and others, and cubins without a fatbin around them. No heap, no exceptions.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim::image {

/// Offset of the first fatbin header (magic, version 1, header of 16 bytes) at or after `from`, at any
/// alignment; bytes.size() where there is none. Reads every byte in between, at the speed of memory.
std::uint64_t find_fatbin(Bytes bytes, std::uint64_t from) noexcept;
/// The same for a fatbin header or a cubin's (ELF64, little-endian, machine 190), whichever comes first.
std::uint64_t find_fatbin_or_cubin(Bytes bytes, std::uint64_t from) noexcept;

}  // namespace kshim::image

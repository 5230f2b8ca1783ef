// SPDX-License-Identifier: Apache-2.0
// Fatbins outside of their own sections: libraries that load images themselves keep them in .rodata, .ldata,
// .cask_resource and others. No heap, no exceptions.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"

namespace kshim::image {

/// Offset of the first fatbin header (magic, version 1, header of 16 bytes) at or behind `from`, on a
/// multiple of 8; bytes.size() where there is none. Reads every byte in between, at the speed of memory.
std::uint64_t find_fatbin(Bytes bytes, std::uint64_t from) noexcept;

}  // namespace kshim::image

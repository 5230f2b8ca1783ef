// SPDX-License-Identifier: Apache-2.0
// Where a host file keeps its device code: in sections of its own and, where a library loads images itself,
// in .rodata, .ldata, .cask_resource and others, also cubins without a fatbin around them. No heap, no
// exceptions.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "kshim/image/elf.h"

namespace kshim::image {

/// What a section of a host ELF file may hold of device code.
enum class SectionRole : std::uint8_t {
  none,
  fatbins,      ///< .nv_fatbin: one after the other
  relocatable,  ///< __nv_relfatbin: the same, of the parts of relocatable device code
  wrappers,     ///< .nvFatBinSegment: which fatbins the runtime registers
  data,         ///< fatbins may lie anywhere in it, or none
};
SectionRole section_role(const ElfSection& section) noexcept;

/// Offset of the first fatbin header (magic, version 1, header of 16 bytes) at or after `from`, at any
/// alignment; bytes.size() where there is none. Reads every byte in between, at the speed of memory.
std::uint64_t find_fatbin(Bytes bytes, std::uint64_t from) noexcept;
/// The same for a fatbin header or a cubin's (ELF64, little-endian, machine 190), whichever comes first.
std::uint64_t find_fatbin_or_cubin(Bytes bytes, std::uint64_t from) noexcept;

}  // namespace kshim::image

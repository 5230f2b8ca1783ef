// SPDX-License-Identifier: Apache-2.0
// Finds device code in a host file: in sections of its own and, if a library loads images itself, in .rodata,
// .ldata, .cask_resource and others, also cubins outside of fatbins.
// No heap, no exceptions.
#pragma once
#include <cstdint>

#include "kshim/base/bytes.h"
#include "kshim/image/elf.h"

namespace kshim::image {

/// The kind of device code in a section of a host ELF file.
enum class SectionRole : std::uint8_t {
  none,
  fatbins,      ///< .nv_fatbin: one after the other
  relocatable,  ///< __nv_relfatbin: the same, of the parts of relocatable device code
  wrappers,     ///< .nvFatBinSegment: which fatbins the runtime registers
  data,         ///< fatbins may lie anywhere in it, or none
};
SectionRole section_role(const ElfSection& section) noexcept;

/// Offset of the first fatbin header (magic, version 1, header of 16 bytes) at or after `from`, at any
/// alignment; bytes.size() if there is none. Reads every byte in between.
std::uint64_t find_fatbin(Bytes bytes, std::uint64_t from) noexcept;
/// The same for a fatbin header or a cubin's (ELF64, little-endian, machine 190), whichever comes first.
std::uint64_t find_fatbin_or_cubin(Bytes bytes, std::uint64_t from) noexcept;
/// The same for one of these or the word `.version`, with which PTX begins.
std::uint64_t find_device_image(Bytes bytes, std::uint64_t from) noexcept;

}  // namespace kshim::image

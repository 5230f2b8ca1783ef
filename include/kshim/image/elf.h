// SPDX-License-Identifier: Apache-2.0
// ELF64 little-endian, host objects and cubins alike: sections, symbols, notes, build id. Bounds-checked
// views.
#pragma once
#include <cstdint>
#include <string_view>

#include "kshim/base/bytes.h"

namespace kshim::image {

struct ElfSection {
  std::string_view name;
  std::uint32_t index = 0;
  std::uint32_t type = 0;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;  ///< link-time virtual address
  std::uint64_t offset = 0;   ///< in the file
  std::uint64_t entry_size = 0;
  std::uint32_t link = 0;
  std::uint32_t info = 0;
  std::uint64_t size = 0;
  Bytes bytes;  ///< empty for SHT_NOBITS
};

struct ElfSegment {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t address = 0;  ///< link-time virtual address
  std::uint64_t offset = 0;   ///< in the file
  std::uint64_t file_size = 0;
};

struct ElfSymbol {
  std::string_view name;
  std::uint64_t value = 0;
  std::uint64_t size = 0;
  std::uint16_t section = 0;
  std::uint8_t info = 0;   ///< binding << 4 | type
  std::uint8_t other = 0;  ///< visibility; STO_CUDA_ENTRY (0x10) marks a kernel in a cubin
};

class ElfReader {
 public:
  ElfReader() = default;
  static Result<ElfReader> open(Bytes bytes) noexcept;
  /// The same for truncated files: a table of sections or segments that is damaged or cut off counts as
  /// absent.
  static Result<ElfReader> open_damaged(Bytes bytes) noexcept;
  std::uint16_t type() const noexcept { return type_; }        ///< ET_REL, ET_EXEC, ET_DYN
  std::uint16_t machine() const noexcept { return machine_; }  ///< 190 = CUDA
  std::uint8_t os_abi() const noexcept { return os_abi_; }
  std::uint8_t abi_version() const noexcept { return abi_version_; }
  std::uint32_t flags() const noexcept { return flags_; }
  std::uint32_t section_count() const noexcept { return section_count_; }
  Result<ElfSection> section(std::uint32_t index) const noexcept;
  /// The same, but `bytes` ends where the file does, and the name where it gets longer than any of interest,
  /// so that listing all sections of a hostile file takes time for each section and not for its name.
  Result<ElfSection> section_cut(std::uint32_t index) const noexcept;
  std::uint32_t segment_count() const noexcept { return program_count_; }
  Result<ElfSegment> segment(std::uint32_t index) const noexcept;
  /// Errc::not_found when there is none of that name.
  Result<ElfSection> section(std::string_view name) const noexcept;
  std::uint64_t symbol_count(const ElfSection& table) const noexcept;
  Result<ElfSymbol> symbol(const ElfSection& table, std::uint64_t index) const noexcept;
  /// The bytes of NT_GNU_BUILD_ID, by section or program header. Errc::not_found when there is none.
  Result<Bytes> build_id() const noexcept;
  /// File bytes of `size` at a link-time virtual address, through the program headers (or sections of an
  /// object file).
  Result<Bytes> at_address(std::uint64_t address, std::uint64_t size) const noexcept;
  /// File bytes from a link-time virtual address to the end of the segment that holds it.
  Result<Bytes> from_address(std::uint64_t address) const noexcept;
  /// Total size in bytes that the headers describe: how an image known only by its address is measured.
  std::uint64_t extent() const noexcept;
  Bytes bytes() const noexcept { return bytes_; }

 private:
  static Result<ElfReader> open_header(Bytes bytes) noexcept;
  Result<bool> read_sections() noexcept;
  Result<bool> read_segments() noexcept;
  Result<Bytes> name_table() const noexcept;
  Bytes bytes_;
  std::uint16_t type_ = 0;
  std::uint16_t machine_ = 0;
  std::uint8_t os_abi_ = 0;
  std::uint8_t abi_version_ = 0;
  std::uint32_t flags_ = 0;
  std::uint64_t section_offset_ = 0;
  std::uint32_t section_count_ = 0;
  std::uint32_t names_index_ = 0;
  std::uint64_t program_offset_ = 0;
  std::uint32_t program_count_ = 0;
};

}  // namespace kshim::image

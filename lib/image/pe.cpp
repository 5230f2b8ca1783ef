// SPDX-License-Identifier: Apache-2.0
// Source: Microsoft, "PE Format": MS-DOS stub, COFF file header, optional header, section table.
#include "kshim/image/pe.h"

namespace kshim::image {
namespace {

struct FileHeader {  // behind "PE\0\0"
  std::uint16_t machine, section_count;
  std::uint32_t time, symbols, symbol_count;
  std::uint16_t optional_size, flags;
};
static_assert(sizeof(FileHeader) == 20);

struct SectionHeader {
  char name[8];
  std::uint32_t virtual_size, address, size, offset;
  std::uint32_t relocations, lines;
  std::uint16_t relocation_count, line_count;
  std::uint32_t flags;
};
static_assert(sizeof(SectionHeader) == 40);

constexpr std::uint16_t kDosMagic = 0x5a4d;     // "MZ"
constexpr std::uint32_t kPeMagic = 0x00004550;  // "PE\0\0"
constexpr std::uint64_t kPeOffset = 0x3c;       // e_lfanew
constexpr std::uint16_t kOptional64 = 0x20b;    // PE32+
constexpr std::uint16_t kOptional32 = 0x10b;    // PE32
constexpr std::uint64_t kImageBase64 = 24;      // in the optional header
constexpr std::uint64_t kImageBase32 = 28;

}  // namespace

Result<PeReader> PeReader::open(Bytes bytes) noexcept {
  const auto dos = read_le<std::uint16_t>(bytes, 0);
  if (!dos) return dos.error();
  if (*dos != kDosMagic) return Error{Errc::bad_magic, 0};
  const auto start = read_le<std::uint32_t>(bytes, kPeOffset);
  if (!start) return start.error();
  const auto magic = read_le<std::uint32_t>(bytes, *start);
  // The stub of a DOS program may have any value there.
  if (!magic || *magic != kPeMagic) return Error{Errc::bad_magic, *start};
  const std::uint64_t at = std::uint64_t{*start} + sizeof *magic;
  const auto header = read_le<FileHeader>(bytes, at);
  if (!header) return header.error();
  PeReader pe;
  pe.bytes_ = bytes;
  pe.machine_ = header->machine;
  pe.section_count_ = header->section_count;
  const std::uint64_t optional = at + sizeof(FileHeader);
  pe.section_offset_ = optional + header->optional_size;
  const auto kind = read_le<std::uint16_t>(bytes, optional);
  if (!kind) return kind.error();
  if (*kind == kOptional64) {
    pe.image_base_ = read_le<std::uint64_t>(bytes, optional + kImageBase64).value_or(0);
  } else if (*kind == kOptional32) {
    pe.image_base_ = read_le<std::uint32_t>(bytes, optional + kImageBase32).value_or(0);
  } else {
    return Error{Errc::unsupported_version, optional};
  }
  return pe;
}

Result<PeSection> PeReader::section(std::uint32_t index) const noexcept {
  if (index >= section_count_) return Error{Errc::not_found};
  const std::uint64_t at = section_offset_ + std::uint64_t{index} * sizeof(SectionHeader);
  const auto header = read_le<SectionHeader>(bytes_, at);
  if (!header) return header.error();
  PeSection out;
  // A view into the file: the copy on the stack does not live on.
  const std::string_view name = text_of(bytes_.subspan(static_cast<std::size_t>(at), sizeof header->name));
  out.name = name.substr(0, name.find('\0'));
  out.address = header->address;
  out.offset = header->offset;
  // Padded to the file's alignment; what lies behind virtual_size is not loaded, and is zeros.
  out.size = header->size;
  out.flags = header->flags;
  if (header->offset < bytes_.size()) {
    const std::uint64_t there = bytes_.size() - header->offset;
    out.bytes =
        bytes_.subspan(header->offset, static_cast<std::size_t>(header->size < there ? header->size : there));
  }
  return out;
}

}  // namespace kshim::image

// SPDX-License-Identifier: Apache-2.0
// Sources: System V ABI, chapters 4 and 5 (ELF-64), and its extended section numbering.
#include "kshim/image/elf.h"

namespace kshim::image {
namespace {

struct FileHeader {
  std::uint8_t ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_offset, section_offset;
  std::uint32_t flags;
  std::uint16_t header_size, program_size, program_count, section_size, section_count, names_index;
};
static_assert(sizeof(FileHeader) == 64);

struct ProgramHeader {
  std::uint32_t type, flags;
  std::uint64_t offset, address, physical, file_size, memory_size, alignment;
};
static_assert(sizeof(ProgramHeader) == 56);

struct SectionHeader {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_size;
};
static_assert(sizeof(SectionHeader) == 64);

struct SymbolRecord {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
static_assert(sizeof(SymbolRecord) == 24);

constexpr std::uint32_t kNoBits = 8;  // SHT_NOBITS
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kNote = 7;         // SHT_NOTE
constexpr std::uint32_t kLoad = 1;         // PT_LOAD
constexpr std::uint32_t kProgramNote = 4;  // PT_NOTE
constexpr std::uint32_t kBuildId = 3;      // NT_GNU_BUILD_ID
constexpr std::uint16_t kExtendedIndex = 0xffff;
constexpr std::uint64_t kAllocated = 2;  // SHF_ALLOC

/// Sections that take no room in the file. In cubins these are also the memory spaces of the device (seen in
/// relocatable cubins: .nv_debug.shared of NCCL 2.28, .nv.merc.nv.shared.reserved.0), whose size and offset
/// describe no file bytes.
constexpr bool has_no_bytes(std::uint32_t type, std::uint16_t machine) noexcept {
  if (type == kNoBits) return true;
  constexpr std::uint32_t kGlobal = 0x70000007;
  constexpr std::uint32_t kLocal = 0x70000009;
  constexpr std::uint32_t kShared = 0x7000000a;
  constexpr std::uint32_t kSharedReserved = 0x70000015;
  return machine == kMachineCuda &&
         (type == kGlobal || type == kLocal || type == kShared || type == kSharedReserved);
}

/// Longer than any known mangled name. A file in which all sections share one huge name must not take
/// quadratic time.
constexpr std::size_t kMaxTextLength = std::size_t{1} << 16;

/// The text from `offset` to the next NUL, which must be inside the table.
Result<std::string_view> string_at(Bytes table, std::uint64_t offset) noexcept {
  if (offset >= table.size()) return Error{Errc::truncated, offset};
  const std::string_view rest = text_of(table).substr(static_cast<std::size_t>(offset), kMaxTextLength);
  const std::size_t end = rest.find('\0');
  if (end == std::string_view::npos) return Error{Errc::truncated, offset};
  return rest.substr(0, end);
}

/// start + count * each, or the largest number: such a table is outside of every file.
constexpr std::uint64_t table_end(std::uint64_t start, std::uint64_t count, std::uint64_t each) noexcept {
  if (count > (UINT64_MAX - start) / each) return UINT64_MAX;
  return start + count * each;
}

constexpr std::uint64_t align4(std::uint64_t value) noexcept { return (value + 3) & ~std::uint64_t{3}; }

Result<Bytes> build_id_in(Bytes notes) noexcept {
  std::uint64_t at = 0;
  while (notes.size() - at >= 12) {
    const auto name_size = read_le<std::uint32_t>(notes, at);
    const auto size = read_le<std::uint32_t>(notes, at + 4);
    const auto type = read_le<std::uint32_t>(notes, at + 8);
    if (!name_size || !size || !type) break;
    const std::uint64_t content = at + 12 + align4(*name_size);
    const auto name = slice(notes, at + 12, *name_size);
    const auto value = slice(notes, content, *size);
    if (!name || !value) return Error{Errc::truncated, at};
    if (*type == kBuildId && text_of(*name) == std::string_view("GNU\0", 4)) return value;
    at = content + align4(*size);
    if (at > notes.size()) break;
  }
  return Error{Errc::not_found};
}

ElfSection described(const SectionHeader& header, std::uint32_t index) noexcept {
  ElfSection out;
  out.index = index;
  out.type = header.type;
  out.flags = header.flags;
  out.address = header.address;
  out.offset = header.offset;
  out.entry_size = header.entry_size;
  out.link = header.link;
  out.info = header.info;
  out.size = header.size;
  return out;
}

/// What open() and open_damaged() share: the file header, without a look at the tables it names.
Result<FileHeader> read_header(Bytes bytes) noexcept {
  const auto magic = slice(bytes, 0, 4);
  if (!magic) return magic.error();
  if (text_of(*magic) !=
      "\x7f"
      "ELF")
    return Error{Errc::bad_magic, 0};
  const auto header = read_le<FileHeader>(bytes, 0);
  if (!header) return Error{Errc::truncated, bytes.size()};
  constexpr std::uint8_t kClass64 = 2;
  constexpr std::uint8_t kLittleEndian = 1;
  if (header->ident[4] != kClass64 || header->ident[5] != kLittleEndian || header->ident[6] != 1)
    return Error{Errc::unsupported_version, 4};
  return header;
}

}  // namespace

Result<ElfReader> ElfReader::open_header(Bytes bytes) noexcept {
  const auto header = read_header(bytes);
  if (!header) return header.error();
  ElfReader elf;
  elf.bytes_ = bytes;
  elf.type_ = header->type;
  elf.machine_ = header->machine;
  elf.os_abi_ = header->ident[7];
  elf.abi_version_ = header->ident[8];
  elf.flags_ = header->flags;
  return elf;
}

Result<bool> ElfReader::read_sections() noexcept {
  const auto header = read_header(bytes_);
  if (!header) return header.error();
  if (header->section_offset == 0) return true;
  if (header->section_size != sizeof(SectionHeader)) return Error{Errc::bad_header, 58};
  std::uint32_t count = header->section_count;
  std::uint32_t names = header->names_index;
  if (count == 0 || names == kExtendedIndex) {
    const auto first = read_le<SectionHeader>(bytes_, header->section_offset);
    if (!first) return first.error();
    if (count == 0) {
      if (first->size > UINT32_MAX) return Error{Errc::bad_header, header->section_offset};
      count = static_cast<std::uint32_t>(first->size);
    }
    if (names == kExtendedIndex) names = first->link;
  }
  if (table_end(header->section_offset, count, sizeof(SectionHeader)) > bytes_.size())
    return Error{Errc::truncated, header->section_offset};
  section_offset_ = header->section_offset;
  section_count_ = count;
  names_index_ = names;
  return true;
}

Result<bool> ElfReader::read_segments() noexcept {
  const auto header = read_header(bytes_);
  if (!header) return header.error();
  if (header->program_count == 0) return true;
  if (header->program_size != sizeof(ProgramHeader)) return Error{Errc::bad_header, 54};
  if (table_end(header->program_offset, header->program_count, sizeof(ProgramHeader)) > bytes_.size())
    return Error{Errc::truncated, header->program_offset};
  program_offset_ = header->program_offset;
  program_count_ = header->program_count;
  return true;
}

Result<ElfReader> ElfReader::open(Bytes bytes) noexcept {
  auto opened = open_header(bytes);
  if (!opened) return opened;
  ElfReader elf = *opened;
  if (const auto sections = elf.read_sections(); !sections) return sections.error();
  if (const auto segments = elf.read_segments(); !segments) return segments.error();
  return elf;
}

Result<ElfReader> ElfReader::open_damaged(Bytes bytes) noexcept {
  auto opened = open_header(bytes);
  if (!opened) return opened;
  ElfReader elf = *opened;
  static_cast<void>(elf.read_sections());
  static_cast<void>(elf.read_segments());
  return elf;
}

Result<ElfSection> ElfReader::section(std::uint32_t index) const noexcept {
  if (index >= section_count_) return Error{Errc::not_found};
  const std::uint64_t at = section_offset_ + std::uint64_t{index} * sizeof(SectionHeader);
  const auto header = read_le<SectionHeader>(bytes_, at);
  if (!header) return header.error();
  ElfSection out = described(*header, index);
  if (names_index_ != 0) {
    const auto table = name_table();
    if (!table) return table.error();
    const auto name = string_at(*table, header->name);
    if (!name) return Error{Errc::truncated, at};
    out.name = *name;
  }
  if (!has_no_bytes(header->type, machine_) && index != 0) {
    const auto bytes = slice(bytes_, header->offset, header->size);
    if (!bytes) return Error{Errc::truncated, at};
    out.bytes = *bytes;
  }
  return out;
}

Result<Bytes> ElfReader::name_table() const noexcept {
  const auto names =
      read_le<SectionHeader>(bytes_, section_offset_ + std::uint64_t{names_index_} * sizeof(SectionHeader));
  if (names_index_ >= section_count_ || !names) return Error{Errc::bad_header, 62};
  return slice(bytes_, names->offset, names->size);
}

Result<ElfSection> ElfReader::section_cut(std::uint32_t index) const noexcept {
  if (index >= section_count_) return Error{Errc::not_found};
  const auto header =
      read_le<SectionHeader>(bytes_, section_offset_ + std::uint64_t{index} * sizeof(SectionHeader));
  if (!header) return header.error();
  ElfSection out = described(*header, index);
  if (const auto table = name_table(); table && header->name < table->size()) {
    constexpr std::size_t kMaxNameLength = 64;
    const std::string_view rest = text_of(*table).substr(header->name, kMaxNameLength);
    out.name = rest.substr(0, rest.find('\0'));
  }
  if (!has_no_bytes(header->type, machine_) && index != 0 && header->offset < bytes_.size()) {
    const std::uint64_t there = bytes_.size() - header->offset;
    out.bytes = bytes_.subspan(static_cast<std::size_t>(header->offset),
                               static_cast<std::size_t>(header->size < there ? header->size : there));
  }
  return out;
}

Result<ElfSegment> ElfReader::segment(std::uint32_t index) const noexcept {
  if (index >= program_count_) return Error{Errc::not_found};
  const auto header =
      read_le<ProgramHeader>(bytes_, program_offset_ + std::uint64_t{index} * sizeof(ProgramHeader));
  if (!header) return header.error();
  return ElfSegment{header->type, header->flags, header->address, header->offset, header->file_size};
}

Result<ElfSection> ElfReader::section(std::string_view name) const noexcept {
  for (std::uint32_t index = 1; index < section_count_; ++index) {
    const auto candidate = section(index);
    if (!candidate) return candidate.error();
    if (candidate->name == name) return candidate;
  }
  return Error{Errc::not_found};
}

std::uint64_t ElfReader::symbol_count(const ElfSection& table) const noexcept {
  return table.bytes.size() / sizeof(SymbolRecord);
}

Result<ElfSymbol> ElfReader::symbol(const ElfSection& table, std::uint64_t index) const noexcept {
  if (index >= symbol_count(table)) return Error{Errc::not_found};
  const std::uint64_t at = table.offset + index * sizeof(SymbolRecord);
  const auto record = read_le<SymbolRecord>(table.bytes, index * sizeof(SymbolRecord));
  if (!record) return Error{Errc::truncated, at};
  const auto strings =
      read_le<SectionHeader>(bytes_, section_offset_ + std::uint64_t{table.link} * sizeof(SectionHeader));
  if (table.link >= section_count_ || !strings) return Error{Errc::bad_header, table.offset};
  const auto names = slice(bytes_, strings->offset, strings->size);
  if (!names) return Error{Errc::truncated, at};
  const auto name = string_at(*names, record->name);
  if (!name) return Error{Errc::truncated, at};
  return ElfSymbol{*name, record->value, record->size, record->section, record->info, record->other};
}

Result<Bytes> ElfReader::build_id() const noexcept {
  // Real files have few, short notes. A hostile file must not make the reader read the same bytes repeatedly.
  constexpr std::uint64_t kMaxNotesLength = 65536;
  unsigned left = 64;
  const auto look = [&](std::uint64_t offset, std::uint64_t size) -> Result<Bytes> {
    const auto notes = slice(bytes_, offset, size < kMaxNotesLength ? size : kMaxNotesLength);
    return notes ? build_id_in(*notes) : notes;
  };
  for (std::uint32_t index = 0; index < program_count_ && left != 0; ++index) {
    const auto header = segment(index);
    if (!header || header->type != kProgramNote) continue;
    --left;
    if (const auto id = look(header->offset, header->file_size)) return id;
  }
  for (std::uint32_t index = 1; index < section_count_ && left != 0; ++index) {
    const auto header =
        read_le<SectionHeader>(bytes_, section_offset_ + std::uint64_t{index} * sizeof(SectionHeader));
    if (!header || header->type != kNote) continue;
    --left;
    if (const auto id = look(header->offset, header->size)) return id;
  }
  return Error{Errc::not_found};
}

Result<Bytes> ElfReader::from_address(std::uint64_t address) const noexcept {
  for (std::uint32_t index = 0; index < program_count_; ++index) {
    const auto header =
        read_le<ProgramHeader>(bytes_, program_offset_ + std::uint64_t{index} * sizeof(ProgramHeader));
    if (!header || header->type != kLoad || address < header->address) continue;
    const std::uint64_t into = address - header->address;
    if (into >= header->file_size || header->offset > UINT64_MAX - into) continue;
    return slice(bytes_, header->offset + into, header->file_size - into);
  }
  if (program_count_ != 0) return Error{Errc::not_found, address};
  for (std::uint32_t index = 1; index < section_count_; ++index) {
    const auto candidate = section(index);
    if (!candidate || (candidate->flags & kAllocated) == 0 || address < candidate->address) continue;
    const std::uint64_t into = address - candidate->address;
    if (into < candidate->bytes.size()) return candidate->bytes.subspan(static_cast<std::size_t>(into));
  }
  return Error{Errc::not_found, address};
}

Result<Bytes> ElfReader::at_address(std::uint64_t address, std::uint64_t size) const noexcept {
  const auto rest = from_address(address);
  if (!rest) return rest;
  return slice(*rest, 0, size);
}

std::uint64_t ElfReader::extent() const noexcept {
  std::uint64_t end = sizeof(FileHeader);
  const auto include = [&end](std::uint64_t candidate) { end = candidate > end ? candidate : end; };
  if (program_count_ != 0) include(table_end(program_offset_, program_count_, sizeof(ProgramHeader)));
  if (section_count_ != 0) include(table_end(section_offset_, section_count_, sizeof(SectionHeader)));
  for (std::uint32_t index = 1; index < section_count_; ++index) {
    const auto header =
        read_le<SectionHeader>(bytes_, section_offset_ + std::uint64_t{index} * sizeof(SectionHeader));
    if (header && !has_no_bytes(header->type, machine_)) include(table_end(header->offset, header->size, 1));
  }
  for (std::uint32_t index = 0; index < program_count_; ++index) {
    const auto header =
        read_le<ProgramHeader>(bytes_, program_offset_ + std::uint64_t{index} * sizeof(ProgramHeader));
    if (header && header->file_size != 0) include(table_end(header->offset, header->file_size, 1));
  }
  return end < bytes_.size() ? end : bytes_.size();
}

}  // namespace kshim::image

// SPDX-License-Identifier: Apache-2.0
// Sources: System V ABI (Elf64_Rela), its supplements for x86-64 and AArch64 (relocation types); Microsoft,
// "PE Format".
#include "analyzer/device_code/device_code_pointers.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>

namespace kshim::analysis {
namespace {

/// The piece that holds a value, by the member that the pieces are sorted by.
template <class Pieces, class Member>
auto find_piece(const Pieces& pieces, std::uint64_t value, Member member) {
  auto at =
      std::upper_bound(pieces.begin(), pieces.end(), value,
                       [member](std::uint64_t wanted, const auto& piece) { return wanted < piece.*member; });
  if (at == pieces.begin()) return pieces.end();
  --at;
  return value - (*at).*member < at->size ? at : pieces.end();
}

/// Address (in a relocatable object: file offset) of a symbol. kElsewhere: not in this file's contents.
std::uint64_t symbol_value(const image::ElfReader& elf, const image::ElfSection& table, std::uint64_t index) {
  const auto symbol = index < table.bytes.size() / sizeof(Elf64_Sym)
                          ? read_le<Elf64_Sym>(table.bytes, index * sizeof(Elf64_Sym))
                          : Result<Elf64_Sym>(Error{Errc::not_found});
  if (!symbol || symbol->st_shndx == SHN_UNDEF) return PointerMap::kElsewhere;
  if (elf.type() != ET_REL) return symbol->st_value;
  const auto section = elf.section_cut(symbol->st_shndx);
  if (!section || section->bytes.empty()) return PointerMap::kElsewhere;
  return section->offset + symbol->st_value;
}

}  // namespace

PointerMap PointerMap::of_elf(const image::ElfReader& elf) {
  PointerMap out;
  out.file_ = elf.bytes();
  const bool object = elf.type() == ET_REL;
  out.in_place_ = !object;
  if (object) out.by_address_.push_back({0, 0, out.file_.size()});
  for (std::uint32_t index = 0; !object && index < elf.segment_count(); ++index) {
    const auto segment = elf.segment(index);
    if (segment && segment->type == PT_LOAD && segment->file_size != 0)
      out.by_address_.push_back({segment->address, segment->offset, segment->file_size});
  }
  for (std::uint32_t index = 1; index < elf.section_count(); ++index) {
    const auto section = elf.section_cut(index);
    if (!section) continue;
    if (!object && elf.segment_count() == 0 && (section->flags & SHF_ALLOC) != 0 && !section->bytes.empty())
      out.by_address_.push_back({section->address, section->offset, section->bytes.size()});
    if (section->type == SHT_RELA && (object || (section->flags & SHF_ALLOC) != 0))
      out.add_relocations(elf, *section);
  }
  out.sort();
  return out;
}

void PointerMap::add_relocations(const image::ElfReader& elf, const image::ElfSection& section) {
  const auto symbols = elf.section_cut(section.link);
  std::uint64_t base = 0;
  if (elf.type() == ET_REL) {
    const auto patched = elf.section_cut(section.info);
    // Of an object only what the wrappers and the lists of parts hold matters, never .text or debug
    // information.
    if (!patched || (patched->flags & SHF_ALLOC) == 0 || (patched->flags & SHF_EXECINSTR) != 0) return;
    base = patched->offset;
  }
  const std::uint64_t count = section.bytes.size() / sizeof(Elf64_Rela);
  for (std::uint64_t index = 0; index < count; ++index) {
    // Sections that share their bytes do not add up to more than the file.
    if (relocations_.size() > file_.size() / sizeof(Elf64_Rela)) return;
    const auto entry = read_le<Elf64_Rela>(section.bytes, index * sizeof(Elf64_Rela));
    if (!entry) return;
    const auto addend = static_cast<std::uint64_t>(entry->r_addend);
    const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry->r_info));
    const bool arm = elf.machine() == EM_AARCH64;
    std::uint64_t target = kElsewhere;
    if (type == (arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE)) {
      target = addend;
    } else if (type == (arm ? R_AARCH64_ABS64 : R_X86_64_64)) {
      target = symbols ? symbol_value(elf, *symbols, ELF64_R_SYM(entry->r_info)) : kElsewhere;
      if (target != kElsewhere) target += addend;
    } else {
      continue;
    }
    relocations_.push_back({base + entry->r_offset, target});
  }
}

PointerMap PointerMap::of_pe(Bytes file, const image::PeReader& pe) {
  PointerMap out;
  out.file_ = file;
  out.base_ = pe.image_base();
  for (std::uint32_t index = 0; index < pe.section_count(); ++index) {
    const auto section = pe.section(index);
    if (section && !section->bytes.empty())
      out.by_address_.push_back({section->address, section->offset, section->bytes.size()});
  }
  out.sort();
  return out;
}

void PointerMap::sort() {
  by_offset_ = by_address_;
  std::sort(by_address_.begin(), by_address_.end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  std::sort(by_offset_.begin(), by_offset_.end(),
            [](const Piece& a, const Piece& b) { return a.offset < b.offset; });
  std::sort(relocations_.begin(), relocations_.end(),
            [](const Relocation& a, const Relocation& b) { return a.place < b.place; });
}

std::optional<std::uint64_t> PointerMap::offset_of(std::uint64_t address) const {
  const auto piece = find_piece(by_address_, address, &Piece::address);
  if (piece == by_address_.end()) return std::nullopt;
  const std::uint64_t into = address - piece->address;
  // Segments may be longer than the file, and begin behind its end.
  if (piece->offset >= file_.size() || into >= file_.size() - piece->offset) return std::nullopt;
  return piece->offset + into;
}

std::optional<std::uint64_t> PointerMap::follow(std::uint64_t address) const {
  const std::uint64_t target = read(address);
  return target != 0 && target != kElsewhere ? offset_of(target) : std::nullopt;
}

std::optional<std::uint64_t> PointerMap::address_of(std::uint64_t offset) const {
  const auto piece = find_piece(by_offset_, offset, &Piece::offset);
  if (piece == by_offset_.end()) return std::nullopt;
  return piece->address + (offset - piece->offset);
}

std::uint64_t PointerMap::read(std::uint64_t address) const {
  const auto at =
      std::lower_bound(relocations_.begin(), relocations_.end(), address,
                       [](const Relocation& each, std::uint64_t place) { return each.place < place; });
  if (at != relocations_.end() && at->place == address) return at->target;
  if (!in_place_) return 0;
  const auto offset = offset_of(address);
  const std::uint64_t stored = offset ? read_le<std::uint64_t>(file_, *offset).value_or(0) : 0;
  if (stored == 0) return 0;
  return stored >= base_ ? stored - base_ : kElsewhere;
}

}  // namespace kshim::analysis

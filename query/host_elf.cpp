// SPDX-License-Identifier: Apache-2.0
// Sources: System V ABI, chapters 4 and 5; its supplements for x86-64 and AArch64 (relocation types).
#include "query/host_elf.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>

#include "kshim/image/elf.h"
#include "kshim/image/fatbin.h"
#include "kshim/image/relocatable.h"
#include "query/collect.h"

namespace kshim::query {
namespace {

using image::ElfReader;
using image::ElfSection;
using image::FatbinWrapper;
using image::SectionRole;

constexpr std::uint64_t kMaxTable = std::uint64_t{64}
                                    << 20U;                 // bytes of a table of sections, names or wrappers
constexpr std::uint64_t kWindow = std::uint64_t{1} << 20U;  // of relocations, at a time
constexpr std::size_t kMaxLinks = std::size_t{1} << 20U;    // of all modules together

/// Bytes of the file that are loaded at an address.
struct Segment {
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
struct Relocation {
  std::uint64_t place = 0;  ///< address of the pointer
  std::uint64_t target = 0;
};

/// What the tables of an ELF file say, copied: their memory may be given back while code is gathered.
class HostElf {
 public:
  HostElf(SourceFile& file, DeviceCode& out) noexcept : file_(file), out_(out) {}

  Reason find() noexcept {
    if (const Reason reason = read_tables(); reason != Reason::none) return reason;
    Collector collector(file_, out_);
    if (const Reason reason = collector.collect(code_); reason != Reason::none) return reason;
    if (asks_for_wrappers()) {
      if (const Reason reason = read_relocations(); reason != Reason::none) return reason;
      if (const Reason reason = link(collector.parts()); reason != Reason::none) return reason;
      mark_fragments();
    }
    return file_.trouble();
  }

 private:
  Reason read_tables() noexcept;
  Reason add_section(const ElfSection& section) noexcept;
  Reason add_segments(const ElfReader& elf) noexcept;
  /// Whether any wrapper has version 2, or there is LTO-IR: reading relocations costs more than all else.
  bool asks_for_wrappers() noexcept;
  Reason read_relocations() noexcept;
  Reason link(const Array<CodePart>& parts) noexcept;
  Reason link(std::uint64_t wrapper, bool linked, const Array<CodePart>& parts) noexcept;
  void mark_fragments() noexcept;
  Reason add_ptx(CodeModule& module, const Array<CodePart>& parts) noexcept;

  bool offset_of(std::uint64_t address, std::uint64_t& out) const noexcept;
  bool address_of(std::uint64_t offset, std::uint64_t& out) const noexcept;
  /// What the pointer at an address holds when the file is loaded at 0; 0 where it is null or not known.
  std::uint64_t pointer_at(std::uint64_t address) noexcept;
  bool is_needed(const Relocation& entry) const noexcept;

  SourceFile& file_;
  DeviceCode& out_;
  std::uint16_t machine_ = 0;
  bool segmented_ = false;  ///< else addresses are those of sections
  Array<CodeRange> code_;
  Array<Segment> segments_;
  Array<Segment> wrappers_;
  Array<Segment> parts_;        ///< __nv_relfatbin
  Array<Segment> relocations_;  ///< tables in the file
  Array<Relocation> pointers_;  ///< those that matter, by place
};

Reason HostElf::read_tables() noexcept {
  if (!file_.fetch(0, sizeof(Elf64_Ehdr))) return file_.trouble();
  const Bytes bytes = file_.bytes();
  const auto header = read_le<Elf64_Ehdr>(bytes, 0);
  if (!header) return Reason::damaged;
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return Reason::unknown_format;
  if (header->e_type == ET_REL) return Reason::not_linked;
  // The counts of large files stand in section 0: System V ABI, "Extended section numbering".
  if (!file_.fetch(header->e_shoff, sizeof(Elf64_Shdr))) return file_.trouble();
  const auto zero = read_le<Elf64_Shdr>(bytes, header->e_shoff).value_or(Elf64_Shdr{});
  const std::uint64_t sections = header->e_shnum != 0   ? header->e_shnum
                                 : header->e_shoff != 0 ? zero.sh_size
                                                        : 0;
  if (sections > kMaxTable / sizeof(Elf64_Shdr)) return Reason::damaged;
  if (!file_.fetch(header->e_shoff, sections * sizeof(Elf64_Shdr))) return file_.trouble();
  if (!file_.fetch(header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr))) return file_.trouble();
  const auto elf = ElfReader::open(bytes);
  if (!elf) return Reason::damaged;
  machine_ = elf->machine();
  segmented_ = elf->segment_count() != 0;
  const std::uint32_t names = header->e_shstrndx == SHN_XINDEX ? zero.sh_link : header->e_shstrndx;
  if (const auto table = elf->section_cut(names); table && names != 0) {
    if (table->size > kMaxTable) return Reason::damaged;
    if (!file_.fetch(table->offset, table->size)) return file_.trouble();
  }
  for (std::uint32_t index = 1; index < elf->section_count(); ++index) {
    const auto section = elf->section_cut(index);
    if (!section) return Reason::damaged;
    if (const Reason reason = add_section(*section); reason != Reason::none) return reason;
  }
  return add_segments(*elf);
}

Reason HostElf::add_section(const ElfSection& section) noexcept {
  if (section.type == SHT_NOBITS || section.type == SHT_NULL) return Reason::none;
  if (section.bytes.size() < section.size) return Reason::damaged;
  const Segment piece{section.address, section.offset, section.size};
  bool kept = segmented_ || (section.flags & SHF_ALLOC) == 0 || segments_.push(piece);
  switch (const SectionRole role = image::section_role(section)) {
    case SectionRole::wrappers:
      if (section.size > kMaxTable) return Reason::damaged;
      kept = wrappers_.push(piece) && kept;
      break;
    case SectionRole::relocatable:
      kept = parts_.push(piece) && code_.push({section.offset, section.offset + section.size, role}) && kept;
      break;
    case SectionRole::fatbins:
    case SectionRole::data:
      kept = code_.push({section.offset, section.offset + section.size, role}) && kept;
      break;
    case SectionRole::none:
      if (section.type == SHT_RELA && (section.flags & SHF_ALLOC) != 0)
        kept = relocations_.push(piece) && kept;
  }
  return kept ? Reason::none : Reason::no_memory;
}

Reason HostElf::add_segments(const ElfReader& elf) noexcept {
  const std::uint64_t size = file_.bytes().size();
  for (std::uint32_t index = 0; index < elf.segment_count(); ++index) {
    const auto segment = elf.segment(index);
    if (!segment) return Reason::damaged;
    if (segment->type != PT_LOAD || segment->file_size == 0) continue;
    if (segment->offset > size || segment->file_size > size - segment->offset) return Reason::damaged;
    bool kept = segments_.push({segment->address, segment->offset, segment->file_size});
    // Without section headers the segments tell what is loaded.
    if (elf.section_count() == 0)
      kept = kept && code_.push({segment->offset, segment->offset + segment->file_size, SectionRole::data});
    if (!kept) return Reason::no_memory;
  }
  return Reason::none;
}

bool HostElf::asks_for_wrappers() noexcept {
  const auto is_lto = [](const CodeImage& image) { return image.candidate.kind == image::ImageKind::ltoir; };
  if (wrappers_.size() != 0 && std::any_of(out_.images.begin(), out_.images.end(), is_lto)) return true;
  for (const Segment& section : wrappers_) {
    if (!file_.fetch(section.offset, section.size)) return true;  // trouble() says why
    for (std::uint64_t at = 0; at + sizeof(FatbinWrapper) <= section.size; at += sizeof(FatbinWrapper)) {
      const auto wrapper = read_le<FatbinWrapper>(file_.bytes(), section.offset + at);
      if (wrapper && wrapper->magic == image::kWrapperMagic && wrapper->version == 2) return true;
    }
  }
  return false;
}

/// Only pointers in wrappers and pointers to parts: a large library has millions of others.
bool HostElf::is_needed(const Relocation& entry) const noexcept {
  const auto holds = [](const Array<Segment>& pieces, std::uint64_t address) {
    return std::any_of(pieces.begin(), pieces.end(),
                       [&](const Segment& each) { return address - each.address < each.size; });
  };
  return holds(wrappers_, entry.place) || holds(parts_, entry.target);
}

Reason HostElf::read_relocations() noexcept {
  const bool arm = machine_ == EM_AARCH64;
  for (const Segment& table : relocations_) {
    const std::uint64_t count = table.size / sizeof(Elf64_Rela);
    for (std::uint64_t index = 0; index < count; ++index) {
      const std::uint64_t at = table.offset + index * sizeof(Elf64_Rela);
      if (index % (kWindow / sizeof(Elf64_Rela)) == 0) {
        file_.drop(table.offset, at - table.offset);
        if (!file_.fetch(at, kWindow)) return file_.trouble();
      }
      const auto entry = read_le<Elf64_Rela>(file_.bytes(), at);
      if (!entry) return Reason::damaged;
      // No symbol of another file has to do with device code: only pointers into this one are of interest.
      const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry->r_info));
      if (type != (arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE)) continue;
      const Relocation relocation{entry->r_offset, static_cast<std::uint64_t>(entry->r_addend)};
      if (!is_needed(relocation)) continue;
      if (pointers_.size() >= kMaxLinks) return Reason::too_large;
      if (!pointers_.push(relocation)) return Reason::no_memory;
    }
  }
  std::sort(pointers_.begin(), pointers_.end(),
            [](const Relocation& a, const Relocation& b) { return a.place < b.place; });
  return Reason::none;
}

bool HostElf::offset_of(std::uint64_t address, std::uint64_t& out) const noexcept {
  for (const Segment& each : segments_) {
    if (address - each.address >= each.size) continue;
    out = each.offset + (address - each.address);
    return true;
  }
  return false;
}

bool HostElf::address_of(std::uint64_t offset, std::uint64_t& out) const noexcept {
  for (const Segment& each : segments_) {
    if (offset - each.offset >= each.size) continue;
    out = each.address + (offset - each.offset);
    return true;
  }
  return false;
}

std::uint64_t HostElf::pointer_at(std::uint64_t address) noexcept {
  const auto* at =
      std::lower_bound(pointers_.begin(), pointers_.end(), address,
                       [](const Relocation& each, std::uint64_t place) { return each.place < place; });
  if (at != pointers_.end() && at->place == address) return at->target;
  std::uint64_t offset = 0;
  if (!offset_of(address, offset) || !file_.fetch(offset, sizeof(std::uint64_t))) return 0;
  return read_le<std::uint64_t>(file_.bytes(), offset).value_or(0);
}

Reason HostElf::link(const Array<CodePart>& parts) noexcept {
  for (const Segment& section : wrappers_) {
    for (std::uint64_t at = 0; at + sizeof(FatbinWrapper) <= section.size; at += sizeof(FatbinWrapper)) {
      if (!file_.fetch(section.offset + at, sizeof(FatbinWrapper))) return file_.trouble();
      const auto wrapper = read_le<FatbinWrapper>(file_.bytes(), section.offset + at);
      if (!wrapper || wrapper->magic != image::kWrapperMagic) continue;
      const Reason reason = link(section.offset + at, wrapper->version == 2, parts);
      if (reason != Reason::none) return reason;
    }
  }
  return file_.trouble();
}

/// `linked`: of relocatable device code.
Reason HostElf::link(std::uint64_t wrapper, bool linked, const Array<CodePart>& parts) noexcept {
  const Reason lost = linked ? Reason::damaged : Reason::none;
  std::uint64_t address = 0;
  std::uint64_t fatbin = 0;
  if (!address_of(wrapper, address)) return lost;
  if (!offset_of(pointer_at(address + offsetof(FatbinWrapper, fatbin)), fatbin)) return lost;
  auto* module =
      std::lower_bound(out_.modules.begin(), out_.modules.end(), fatbin,
                       [](const CodeModule& each, std::uint64_t wanted) { return each.offset < wanted; });
  if (module == out_.modules.end() || module->offset != fatbin) return lost;
  module->registered = true;
  if (!linked || module->part_count != 0) return Reason::none;  // two wrappers of one fatbin are one module
  Array<CodePart> own;
  std::uint64_t list = pointer_at(address + offsetof(FatbinWrapper, prelinked));
  std::uint64_t offset = 0;
  std::size_t listed = 0;
  for (; list != 0 && offset_of(list, offset); list += sizeof(std::uint64_t), ++listed) {
    const std::uint64_t target = pointer_at(list);
    if (target == 0) break;
    if (!offset_of(target, offset) || listed == parts.size()) return Reason::damaged;
    const auto* part =
        std::lower_bound(parts.begin(), parts.end(), offset,
                         [](const CodePart& each, std::uint64_t wanted) { return each.offset < wanted; });
    if (part == parts.end() || part->offset != offset) return Reason::damaged;
    if (!own.push(*part)) return Reason::no_memory;
  }
  // nvcc keeps the list in .bss, and constructors fill it: then every part of the file belongs to the module.
  return add_ptx(*module, listed != 0 ? own : parts);
}

void HostElf::mark_fragments() noexcept {
  const auto is_registered = [](const CodeModule& module) { return module.registered; };
  if (std::none_of(out_.modules.begin(), out_.modules.end(), is_registered)) return;
  for (CodeModule& module : out_.modules) {
    bool executable = false;
    bool links = false;
    each_image_of(out_, module, [&](std::uint32_t index) {
      (out_.images[index].candidate.kind == image::ImageKind::ltoir ? links : executable) = true;
    });
    module.fragment = !module.registered && links && executable;
  }
}

/// Of relocatable parts only the PTX can be loaded; their cubins are what the linker made the module's from.
Reason HostElf::add_ptx(CodeModule& module, const Array<CodePart>& parts) noexcept {
  Array<image::Arch> levels;
  for (const CodePart& part : parts)
    for (std::uint32_t index = part.first; index < part.first + part.count; ++index) {
      const image::Candidate& image = out_.images[index].candidate;
      if (image.kind == image::ImageKind::ptx && !levels.push(image.arch)) return Reason::no_memory;
    }
  std::sort(levels.begin(), levels.end());
  const auto* const end = std::unique(levels.begin(), levels.end());
  Reason reason = Reason::none;
  Array<image::Candidate> images;
  Array<std::uint32_t> taken;
  std::size_t looks = 0;
  image::each_linkable_ptx(
      std::span<const image::Arch>(levels.begin(), end),
      [&](const auto& visit) {
        for (const CodePart& part : parts) {
          looks += 1 + part.count;
          if (looks > kMaxLinks) reason = Reason::too_large;
          if (reason != Reason::none) return;
          images.clear();
          for (std::uint32_t i = 0; i < part.count; ++i)
            if (!images.push(out_.images[part.first + i].candidate)) reason = Reason::no_memory;
          if (!visit(std::span<const image::Candidate>(images.begin(), images.end()))) return;
        }
      },
      [&](std::size_t part, std::size_t number) {
        if (!taken.push(parts[part].first + static_cast<std::uint32_t>(number))) reason = Reason::no_memory;
      });
  std::sort(taken.begin(), taken.end());
  module.first_part = static_cast<std::uint32_t>(out_.parts.size());
  const std::uint32_t* const last = std::unique(taken.begin(), taken.end());
  for (const std::uint32_t* index = taken.begin(); index != last && reason == Reason::none; ++index) {
    if (out_.parts.size() >= kMaxLinks) reason = Reason::too_large;
    if (!out_.parts.push(*index)) reason = Reason::no_memory;
    ++module.part_count;
  }
  return reason;
}

}  // namespace

Reason find_in_elf(SourceFile& file, DeviceCode& out) noexcept { return HostElf(file, out).find(); }

}  // namespace kshim::query

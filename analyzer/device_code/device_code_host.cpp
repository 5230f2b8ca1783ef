// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/device_code_host.h"

#include <elf.h>

#include "analyzer/core/text.h"
#include "kshim/image/fatbin_search.h"
#include "kshim/image/relocatable.h"

namespace kshim::device_code {
namespace {

using image::ElfReader;
using image::ElfSection;
using image::SectionRole;

struct Places {
  std::vector<CodeRange> code;
  std::vector<CodeRange> wrappers;
};

/// Of an ELF or PE header: their numbers do not collide.
std::string machine_name(std::uint16_t machine) {
  static constexpr std::pair<std::uint16_t, std::string_view> kMachines[] = {
      {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_PPC64, "ppc64le"}, {EM_386, "x86"},
      {EM_ARM, "arm"},       {0x8664, "x86-64"},      {0xaa64, "aarch64"},   {0x14c, "x86"}};
  for (const auto& [number, name] : kMachines)
    if (number == machine) return std::string(name);
  return fmt::format("machine {}", machine);
}

void add_section(const ElfReader& elf, const ElfSection& section, CodeCollector& collector, Places& out) {
  const SectionRole role = image::section_role(section);
  if (role == SectionRole::none) return;
  if (section.bytes.size() < section.size) {
    const std::string what = fmt::format("section {} ends behind the end of the file", section.name);
    role == SectionRole::data ? collector.host_damage(elf.bytes().size(), what)
                              : collector.damage(elf.bytes().size(), what);
  }
  const CodeRange range{section.offset, section.offset + section.bytes.size(),
                        role == SectionRole::fatbins       ? RangeKind::fatbins
                        : role == SectionRole::relocatable ? RangeKind::relocatable
                                                           : RangeKind::data};
  if (!section.bytes.empty()) (role == SectionRole::wrappers ? out.wrappers : out.code).push_back(range);
}

/// Without section headers (stripped, packed or cut off) the segments tell what is loaded. One that is
/// executable may hold read-only data as well.
void add_segments(const ElfReader& elf, Places& out) {
  for (std::uint32_t index = 0; index < elf.segment_count(); ++index) {
    const auto segment = elf.segment(index);
    if (!segment || segment->type != PT_LOAD || segment->offset >= elf.bytes().size()) continue;
    const std::uint64_t there = elf.bytes().size() - segment->offset;
    out.code.push_back(
        {segment->offset, segment->offset + std::min(segment->file_size, there), RangeKind::data});
  }
}

// Linkers cut the names of sections to eight characters.
RangeKind kind_of(std::string_view name) {
  if (name == ".nv_fatb") return RangeKind::fatbins;
  return name == "__nv_rel" ? RangeKind::relocatable : RangeKind::data;
}
bool holds_wrappers(std::string_view name) { return name == ".nvFatBi"; }

using image::FatbinWrapper;

// Of all modules together. NCCL 2.28, the largest program of relocatable code seen, has 976 images in its
// parts.
constexpr std::size_t kMaxLinks = std::size_t{1} << 22;

template <class Visit>
void each_wrapper(const std::vector<CodeRange>& ranges, Bytes file, Visit&& visit) {
  std::uint64_t done = 0;  // ranges are sorted: sections that share their bytes are read once
  for (const CodeRange& range : ranges) {
    for (std::uint64_t at = std::max(range.begin, done); at + sizeof(FatbinWrapper) <= range.end;
         at += sizeof(FatbinWrapper)) {
      const auto wrapper = read_le<FatbinWrapper>(file, at);
      if (!wrapper) break;
      if (wrapper->magic == image::kWrapperMagic && !visit(at, wrapper->version == 2)) return;
    }
    done = std::max(done, range.end);
  }
}

class PartLinker {
 public:
  PartLinker(const PointerMap& pointers, CodeCollector& collector, DeviceCode& out)
      : pointers_(pointers), collector_(collector), parts_(collector.parts()), out_(out) {}

  /// `linked`: of relocatable device code. false: enough is enough.
  bool link(std::uint64_t wrapper, bool linked) {
    const auto address = pointers_.address_of(wrapper);
    const auto fatbin = address ? pointers_.follow(*address + offsetof(FatbinWrapper, fatbin)) : std::nullopt;
    const auto index = fatbin ? find_module(out_, *fatbin) : std::nullopt;
    if (!index) {
      if (linked) collector_.damage(wrapper, "a fatbin's wrapper points at no fatbin");
      return true;
    }
    CodeModule& module = out_.modules[*index];
    module.registered = true;
    // Two wrappers of one fatbin are one module all the same.
    if (linked && module.parts.empty())
      add_parts(module, pointers_.read(*address + offsetof(FatbinWrapper, prelinked)), wrapper);
    return links_ < kMaxLinks;
  }

 private:
  const CodePart* part_at(std::uint64_t address) const {
    const auto offset = address != PointerMap::kElsewhere ? pointers_.offset_of(address) : std::nullopt;
    if (!offset) return nullptr;
    const auto at = std::ranges::lower_bound(parts_, *offset, {}, &CodePart::offset);
    return at != parts_.end() && at->offset == *offset ? &*at : nullptr;
  }

  void add_parts(CodeModule& module, std::uint64_t list, std::uint64_t wrapper) {
    std::vector<const CodePart*> found;
    std::uint64_t steps = 0;
    if (list != 0 && list != PointerMap::kElsewhere && pointers_.offset_of(list)) {
      for (;; list += sizeof(std::uint64_t), ++steps) {
        const std::uint64_t target = pointers_.read(list);
        if (target == 0 || ++links_ > kMaxLinks) break;
        const CodePart* part = part_at(target);
        if (part == nullptr || steps == parts_.size()) {
          collector_.damage(wrapper,
                            part == nullptr ? "the wrapper's list of parts points at something else"
                                            : "the wrapper's list of parts is longer than there are parts",
                            &module);
          break;
        }
        found.push_back(part);
      }
    }
    // nvcc keeps the list in .bss and constructors fill it: then every part of the file belongs to the
    // module.
    if (steps == 0)
      for (const CodePart& part : parts_) found.push_back(&part);
    add_ptx(module, found);
  }

  /// Of a relocatable part only the PTX can be loaded; its cubins are what the linker made the module's from.
  void add_ptx(CodeModule& module, const std::vector<const CodePart*>& parts) {
    std::set<image::Arch> levels;
    for (const CodePart* part : parts) {
      if (module.damage == 0) module.damage = part->damage;
      links_ += part->count;
      if (links_ > kMaxLinks) return;
      for (std::uint32_t index = part->first; index < part->first + part->count; ++index)
        if (out_.images[index].candidate.kind == image::ImageKind::ptx)
          levels.insert(out_.images[index].candidate.arch);
    }
    const std::vector<image::Arch> ascending(levels.begin(), levels.end());
    std::set<std::uint32_t> taken;
    std::vector<image::Candidate> images;
    image::each_linkable_ptx(
        std::span(ascending),
        [&](const auto& visit) {
          for (const CodePart* part : parts) {
            links_ += 1 + part->count;
            if (links_ > kMaxLinks) return;
            images.clear();
            for (std::uint32_t i = 0; i < part->count; ++i)
              images.push_back(out_.images[part->first + i].candidate);
            if (!visit(std::span<const image::Candidate>(images))) return;
          }
        },
        [&](std::size_t part, std::size_t number) {
          taken.insert(parts[part]->first + static_cast<std::uint32_t>(number));
        });
    module.parts.assign(taken.begin(), taken.end());
  }

  const PointerMap& pointers_;
  CodeCollector& collector_;
  const std::vector<CodePart>& parts_;
  DeviceCode& out_;
  std::size_t links_ = 0;
};

/// The piece that holds a value, by the member that the pieces are sorted by.
template <class Pieces, class Member>
auto find_piece(const Pieces& pieces, std::uint64_t value, Member member) {
  auto at = std::ranges::upper_bound(pieces, value, {}, member);
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

/// Marks each module that a wrapper points at as registered, and gives those whose wrapper has version 2
/// their parts. Asks for the pointers only where a wrapper has version 2, or there is LTO-IR: reading the
/// relocations costs more than everything else.
void link_parts(std::vector<CodeRange> wrappers, const std::function<PointerMap()>& pointers, Bytes file,
                CodeCollector& collector, DeviceCode& out) {
  std::ranges::sort(wrappers, {}, &CodeRange::begin);
  bool asks = !wrappers.empty() && std::ranges::any_of(out.images, [](const CodeImage& image) {
    return image.candidate.kind == image::ImageKind::ltoir;
  });
  if (!asks)
    each_wrapper(wrappers, file, [&](std::uint64_t, bool linked) {
      asks = linked;
      return !asks;
    });
  if (!asks) return;
  const PointerMap map = pointers();
  PartLinker linker(map, collector, out);
  each_wrapper(wrappers, file, [&](std::uint64_t at, bool linked) { return linker.link(at, linked); });
}

}  // namespace

void find_in_elf(Bytes file, DeviceCode& out) {
  out.host = HostFormat::elf;
  CodeCollector collector(file, out);
  Places places;
  const auto opened = ElfReader::open_damaged(file);
  if (!opened) {
    // 32 bits (toolkits before CUDA 7) or big-endian: not read as ELF, but fatbins look the same everywhere.
    if (opened.error().code == Errc::truncated)
      collector.host_damage(file.size(), "the ELF header is cut off");
    if (const auto machine = read_le<std::uint16_t>(file, offsetof(Elf64_Ehdr, e_machine)))
      out.machine = machine_name(*machine);
    collector.collect({{0, file.size(), RangeKind::data}});
    return;
  }
  const ElfReader& elf = *opened;
  out.machine = machine_name(elf.machine());
  constexpr std::size_t kMaxBuildIdLength = 64;
  if (const auto id = elf.build_id())
    out.build_id = core::hex(id->first(std::min(id->size(), kMaxBuildIdLength)));
  if (const auto whole = ElfReader::open(file); !whole)
    collector.host_damage(whole.error().offset,
                          "the tables of sections or segments lie outside of the file or are wrong");
  for (std::uint32_t index = 1; index < elf.section_count(); ++index)
    if (const auto section = elf.section_cut(index)) add_section(elf, *section, collector, places);
  if (elf.section_count() == 0) add_segments(elf, places);
  if (elf.section_count() == 0 && elf.segment_count() == 0) places.code = {{0, file.size(), RangeKind::data}};
  if (const std::uint64_t end = end_of_elf(file); end < file.size())
    places.code.push_back({end, file.size(), RangeKind::data});
  collector.collect(std::move(places.code));
  link_parts(
      std::move(places.wrappers), [&] { return PointerMap::of_elf(elf); }, file, collector, out);
}

std::uint64_t end_of_elf(Bytes file) {
  // A file whose tables are cut off or wrong says nothing of its end.
  const auto elf = ElfReader::open(file);
  return elf ? std::min<std::uint64_t>(elf->extent(), file.size()) : file.size();
}

bool find_in_pe(Bytes file, DeviceCode& out) {
  const auto pe = image::PeReader::open(file);
  if (!pe) return false;
  out.host = HostFormat::pe;
  out.machine = machine_name(pe->machine());
  CodeCollector collector(file, out);
  std::vector<CodeRange> code;
  std::vector<CodeRange> wrappers;
  for (std::uint32_t index = 0; index < pe->section_count(); ++index) {
    const auto section = pe->section(index);
    if (!section) {
      collector.host_damage(section.error().offset, "the table of sections ends behind the end of the file");
      break;
    }
    if (section->size == 0 || section->is_code()) continue;
    if (section->bytes.size() < section->size && section->is_initialized_data())
      collector.damage(file.size(), fmt::format("section {} ends behind the end of the file", section->name),
                       nullptr,
                       kind_of(section->name) == RangeKind::data && !holds_wrappers(section->name)
                           ? Damage::Of::host
                           : Damage::Of::device_code);
    if (section->bytes.empty()) continue;
    const CodeRange range{section->offset, section->offset + section->bytes.size(), kind_of(section->name)};
    (holds_wrappers(section->name) ? wrappers : code).push_back(range);
  }
  collector.collect(std::move(code));
  link_parts(
      std::move(wrappers), [&] { return PointerMap::of_pe(file, *pe); }, file, collector, out);
  return true;
}

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
  std::ranges::sort(by_address_, {}, &Piece::address);
  std::ranges::sort(by_offset_, {}, &Piece::offset);
  std::ranges::sort(relocations_, {}, &Relocation::place);
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
  const auto at = std::ranges::lower_bound(relocations_, address, {}, &Relocation::place);
  if (at != relocations_.end() && at->place == address) return at->target;
  if (!in_place_) return 0;
  const auto offset = offset_of(address);
  const std::uint64_t stored = offset ? read_le<std::uint64_t>(file_, *offset).value_or(0) : 0;
  if (stored == 0) return 0;
  return stored >= base_ ? stored - base_ : kElsewhere;
}

}  // namespace kshim::device_code

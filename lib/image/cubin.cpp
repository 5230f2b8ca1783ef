// SPDX-License-Identifier: Apache-2.0
// Section names, attribute numbers and record layouts as measured on the output of ptxas 12.4, 12.9 and 13.0:
// docs/internals/image-format.md.
#include "kshim/image/cubin.h"

#include "cubin_info.h"

namespace kshim::image {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint8_t kTypeMask = 0xf;
constexpr std::uint8_t kObject = 1;          // STT_OBJECT
constexpr std::uint8_t kManaged = 0x4;       // STO_CUDA_MANAGED
constexpr std::uint16_t kReserved = 0xff00;  // SHN_LORESERVE and above: absolute, common ...
constexpr std::uint32_t kSymbolTable = 2;    // SHT_SYMTAB

// The note of ptxas: "Cuda compilation tools, release 13.0, V13.0.88" (measured with CUDA 13.0; older
// toolkits write the same sentence).
Version toolkit_in_note(Bytes note) noexcept {
  constexpr std::string_view kMarker = "release ";
  const std::string_view text = text_of(note);
  const std::size_t at = text.find(kMarker);
  if (at == std::string_view::npos) return {};
  const char* const start = text.data() + at + kMarker.size();
  std::size_t size = 0;
  const std::size_t most = text.size() - at - kMarker.size();
  while (size < most && ((start[size] >= '0' && start[size] <= '9') || start[size] == '.')) ++size;
  const auto version = parse_version({start, size});
  return version ? *version : Version{};
}

/// The suffix in a note that holds ptxas's or nvlink's command line: "-arch sm_90a -m 64".
Suffix suffix_in_note(Bytes note, Arch arch) noexcept {
  const ShortName base = to_name(ImageKind::cubin, {arch.cc, Suffix::none});
  std::string_view text = text_of(note);
  for (;;) {
    const std::size_t at = text.find(base.view());
    if (at == std::string_view::npos) return Suffix::none;
    text.remove_prefix(at + base.view().size());
    const std::string_view word = text.substr(0, text.find_first_of(std::string_view(" ,\n\0", 4)));
    if (word == "a") return Suffix::a;
    if (word == "f") return Suffix::f;
  }
}

}  // namespace

Result<CubinReader> CubinReader::open(Bytes bytes) noexcept {
  const auto elf = ElfReader::open(bytes);
  if (!elf) return elf.error();
  if (elf->machine() != kMachineCuda) return Error{Errc::bad_magic, 18};
  CubinReader cubin;
  cubin.elf_ = *elf;
  // ABI version 8 (CUDA 12.9 for SM 100 and later, CUDA 13 for all) moved the SM number up by a byte.
  const unsigned shift = elf->abi_version() >= 8 ? 8 : 0;
  const std::uint32_t number = (elf->flags() >> shift) & 0xff;
  if (number < 10) return Error{Errc::bad_header, 48};
  cubin.arch_.cc = ComputeCapability::from_number(number);
  // The `a` bit of e_flags: set by ptxas 12.4 (ABI 7) and 12.9 (both), no longer by 13.0. Nothing there tells
  // `f`. CUDA 8 and 9 set the same bit in plain sm_60 and sm_61 cubins, long before there were `a` targets.
  const std::uint32_t arch_specific = elf->abi_version() >= 8 ? 0x8 : 0x800;
  constexpr std::uint32_t kFirstSpecific = 90;
  const Suffix from_flags =
      (elf->flags() & arch_specific) != 0 && number >= kFirstSpecific ? Suffix::a : Suffix::none;
  Suffix from_note = Suffix::none;
  Suffix from_compat = Suffix::none;
  for (std::uint32_t index = 1; index < elf->section_count(); ++index) {
    const auto section = elf->section(index);
    if (!section) return section.error();
    if (section->type == kSymbolTable && section->name == ".symtab") cubin.symbols_ = *section;
    if (section->name == ".nv.compat") from_compat = suffix_in_compat(section->bytes);
    if (section->name == ".note.nv.tkinfo") {
      from_note = suffix_in_note(section->bytes, cubin.arch_);
      cubin.toolkit_ = toolkit_in_note(section->bytes);
    }
  }
  for (const Suffix suffix :
       {from_compat, from_flags, from_note})  // the note is the most reliable: it comes last
    if (suffix != Suffix::none) cubin.arch_.suffix = suffix;
  return cubin;
}

Result<GlobalInfo> CubinReader::next_global(std::uint64_t& cursor) const noexcept {
  const std::uint64_t count = elf_.symbol_count(symbols_);
  while (cursor < count) {
    const auto symbol = elf_.symbol(symbols_, cursor++);
    if (!symbol) return symbol.error();
    if ((symbol->info & kTypeMask) != kObject || symbol->section == 0 || symbol->section >= kReserved)
      continue;
    // Not section()'s not_found, which would mean the end of the walk.
    if (symbol->section >= elf_.section_count()) return Error{Errc::bad_header, symbols_.offset};
    const auto section = elf_.section(symbol->section);
    if (!section) return section.error();
    const bool constant = section->name == ".nv.constant3";
    if (!constant && section->name != ".nv.global" && section->name != ".nv.global.init") continue;
    GlobalInfo global;
    global.name = symbol->name;
    global.size = symbol->size;
    global.constant = constant;
    global.managed = (symbol->other & kManaged) != 0;
    if (!section->bytes.empty()) {
      const auto initial = slice(section->bytes, symbol->value, symbol->size);
      if (!initial) return Error{Errc::truncated, section->offset};
      global.initial = *initial;
    }
    return global;
  }
  return Error{Errc::not_found};
}

}  // namespace kshim::image

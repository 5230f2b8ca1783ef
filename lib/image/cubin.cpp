// SPDX-License-Identifier: Apache-2.0
// Section names, attribute numbers and record layouts as measured on the output of ptxas 12.4, 12.9 and 13.0:
// docs/image-format.md.
#include "kshim/image/cubin.h"

namespace kshim::image {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint8_t kTypeMask = 0xf;
constexpr std::uint8_t kFunction = 2;        // STT_FUNC
constexpr std::uint8_t kObject = 1;          // STT_OBJECT
constexpr std::uint8_t kEntry = 0x10;        // STO_CUDA_ENTRY: a kernel, not a device function
constexpr std::uint8_t kManaged = 0x4;       // STO_CUDA_MANAGED
constexpr std::uint16_t kReserved = 0xff00;  // SHN_LORESERVE and above: absolute, common ...
constexpr std::uint32_t kSymbolTable = 2;    // SHT_SYMTAB
/// From compute capability 9.0 on, ptxas places 1 KiB that the driver reserves in front of a block's shared
/// memory.
constexpr std::uint64_t kReservedShared = 1024;

// Attributes of .nv.info sections; the names are cuobjdump's, without EIATTR_.
enum class Attribute : std::uint8_t {
  max_threads = 0x05,
  reqntid = 0x10,
  frame_size = 0x11,
  min_stack_size = 0x12,
  kparam_info = 0x17,
  cbank_param_size = 0x19,
  regcount = 0x2f,
  kparam_info_v2 = 0x45,
};

struct InfoRecord {
  Attribute attribute{};
  std::uint16_t value = 0;  ///< of the short forms
  Bytes bytes;              ///< of the long form
};

/// Walks the records of a .nv.info section: u8 format, u8 attribute, u16 value; format 4 has `value` bytes
/// after it.
class InfoWalk {
 public:
  explicit InfoWalk(Bytes bytes) noexcept : bytes_(bytes) {}
  bool next(InfoRecord& out) noexcept {
    constexpr std::uint8_t kSized = 4;
    const auto format = read_le<std::uint8_t>(bytes_, at_);
    const auto attribute = read_le<std::uint8_t>(bytes_, at_ + 1);
    const auto value = read_le<std::uint16_t>(bytes_, at_ + 2);
    if (!format || !attribute || !value || *format == 0 || *format > kSized) return false;
    out = {static_cast<Attribute>(*attribute), *value, {}};
    at_ += 4;
    if (*format != kSized) return true;
    const auto bytes = slice(bytes_, at_, *value);
    if (!bytes) return false;
    out.bytes = *bytes;
    at_ += *value;
    return true;
  }

 private:
  Bytes bytes_;
  std::uint64_t at_ = 0;
};

struct Parameter {
  std::uint16_t ordinal = 0;
  ParameterInfo info;
};

constexpr bool is_parameter(Attribute attribute) noexcept {
  return attribute == Attribute::kparam_info || attribute == Attribute::kparam_info_v2;
}

/// u32 index, u16 ordinal, u16 offset, then the size: in the upper 14 bits of a u32, or, for kernels whose
/// parameters exceed that (version 2), in a u16.
Result<Parameter> read_parameter(const InfoRecord& record) noexcept {
  const auto ordinal = read_le<std::uint16_t>(record.bytes, 4);
  const auto offset = read_le<std::uint16_t>(record.bytes, 6);
  const auto packed = read_le<std::uint32_t>(record.bytes, 8);
  if (!ordinal || !offset || !packed) return Error{Errc::truncated};
  constexpr unsigned kSizeShift = 18;
  const std::uint32_t size =
      record.attribute == Attribute::kparam_info ? *packed >> kSizeShift : *packed & 0xffff;
  return Parameter{*ordinal, {*offset, size}};
}

constexpr std::uint32_t to_u32(std::uint64_t value) noexcept {
  return value < KernelInfo::kUnknown ? static_cast<std::uint32_t>(value) : KernelInfo::kUnknown;
}

std::uint32_t product(Bytes bytes) noexcept {
  std::uint64_t total = 1;
  for (std::uint64_t at = 0; at < 12; at += 4) {
    const auto factor = read_le<std::uint32_t>(bytes, at);
    if (!factor || *factor == 0 || total > UINT32_MAX / *factor) return KernelInfo::kUnknown;
    total *= *factor;
  }
  return to_u32(total);
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

/// .nv.compat: records of u8 format, u8 tag, u16 value. Tag 9 is 1 in `a` cubins. Tag 2 does not tell `f`: it
/// is 2 in many base cubins of NCCL and cuBLAS 13.0.
Suffix suffix_in_compat(Bytes compat) noexcept {
  InfoWalk walk(compat);
  for (InfoRecord record; walk.next(record);)
    if (static_cast<std::uint8_t>(record.attribute) == 9 && (record.value & 0xffU) == 1) return Suffix::a;
  return Suffix::none;
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
    if (section->name == ".note.nv.tkinfo") from_note = suffix_in_note(section->bytes, cubin.arch_);
  }
  for (const Suffix suffix : {from_compat, from_flags, from_note})  // the note tells most: it comes last
    if (suffix != Suffix::none) cubin.arch_.suffix = suffix;
  return cubin;
}

Result<KernelInfo> CubinReader::kernel_of(const ElfSymbol& symbol, std::uint64_t index) const noexcept {
  KernelInfo kernel;
  kernel.name = symbol.name;
  kernel.code_bytes = symbol.size;
  kernel.shared_bytes = 0;
  kernel.local_bytes = 0;
  kernel.constant_bytes = 0;
  kernel.parameter_bytes = 0;
  const auto belongs = [&symbol](std::string_view section, std::string_view prefix) {
    return section.size() == prefix.size() + symbol.name.size() && section.starts_with(prefix) &&
           section.ends_with(symbol.name);
  };
  const auto raise = [](std::uint32_t& target, std::uint32_t value) {
    target = value > target ? value : target;
  };
  for (std::uint32_t at = 1; at < elf_.section_count(); ++at) {
    const auto section = elf_.section(at);
    if (!section) return section.error();
    if (!section->name.starts_with(".nv.")) continue;
    if (section->name == ".nv.constant3") {
      kernel.constant_bytes = to_u32(section->size);
    } else if (belongs(section->name, ".nv.shared.")) {
      const std::uint64_t reserved =
          arch_.cc >= ComputeCapability{9, 0} && section->size >= kReservedShared ? kReservedShared : 0;
      kernel.shared_bytes = to_u32(section->size - reserved);
    } else if (section->name == ".nv.info") {
      InfoWalk walk(section->bytes);
      for (InfoRecord record; walk.next(record);) {
        const auto subject = read_le<std::uint32_t>(record.bytes, 0);
        const auto value = read_le<std::uint32_t>(record.bytes, 4);
        if (!subject || !value || *subject != index) continue;
        if (record.attribute == Attribute::regcount) kernel.registers = *value;
        if (record.attribute == Attribute::frame_size || record.attribute == Attribute::min_stack_size)
          raise(kernel.local_bytes, *value);
      }
    } else if (belongs(section->name, ".nv.info.")) {
      InfoWalk walk(section->bytes);
      for (InfoRecord record; walk.next(record);) {
        if (record.attribute == Attribute::cbank_param_size) kernel.parameter_bytes = record.value;
        if (is_parameter(record.attribute)) ++kernel.parameter_count;
        if (record.attribute == Attribute::max_threads || record.attribute == Attribute::reqntid)
          kernel.max_threads = product(record.bytes);
      }
    }
  }
  return kernel;
}

Result<KernelName> CubinReader::next_name(std::uint64_t& cursor) const noexcept {
  const std::uint64_t count = elf_.symbol_count(symbols_);
  while (cursor < count) {
    const std::uint64_t index = cursor++;
    const auto symbol = elf_.symbol(symbols_, index);
    if (!symbol) return symbol.error();
    if ((symbol->info & kTypeMask) != kFunction || (symbol->other & kEntry) == 0 || symbol->section == 0)
      continue;
    return KernelName{symbol->name, symbol->size, index};
  }
  return Error{Errc::not_found};
}

Result<KernelInfo> CubinReader::next_kernel(std::uint64_t& cursor) const noexcept {
  const auto name = next_name(cursor);
  if (!name) return name.error();
  const auto symbol = elf_.symbol(symbols_, name->symbol);
  if (!symbol) return symbol.error();
  return kernel_of(*symbol, name->symbol);
}

Result<KernelInfo> CubinReader::find_kernel(std::string_view name) const noexcept {
  for (std::uint64_t cursor = 0;;) {
    const auto candidate = next_name(cursor);
    if (!candidate) return candidate.error();
    if (candidate->name != name) continue;
    const auto symbol = elf_.symbol(symbols_, candidate->symbol);
    if (!symbol) return symbol.error();
    return kernel_of(*symbol, candidate->symbol);
  }
}

Result<ParameterInfo> CubinReader::parameter(std::string_view kernel, std::uint32_t ordinal) const noexcept {
  constexpr std::string_view kPrefix = ".nv.info.";
  for (std::uint32_t index = 1; index < elf_.section_count(); ++index) {
    const auto section = elf_.section(index);
    if (!section) return section.error();
    if (!section->name.starts_with(kPrefix) || section->name.substr(kPrefix.size()) != kernel) continue;
    InfoWalk walk(section->bytes);
    for (InfoRecord record; walk.next(record);) {
      if (!is_parameter(record.attribute)) continue;
      const auto parameter = read_parameter(record);
      if (!parameter) return Error{Errc::truncated, section->offset};
      if (parameter->ordinal == ordinal) return parameter->info;
    }
    break;
  }
  return Error{Errc::not_found};
}

Result<GlobalInfo> CubinReader::next_global(std::uint64_t& cursor) const noexcept {
  const std::uint64_t count = elf_.symbol_count(symbols_);
  while (cursor < count) {
    const auto symbol = elf_.symbol(symbols_, cursor++);
    if (!symbol) return symbol.error();
    if ((symbol->info & kTypeMask) != kObject || symbol->section == 0 || symbol->section >= kReserved)
      continue;
    // Not section()'s own not_found, which would read as the end of the walk.
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

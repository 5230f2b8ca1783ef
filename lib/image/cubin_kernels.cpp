// SPDX-License-Identifier: Apache-2.0
// The kernels of a cubin and their resources.
#include <algorithm>

#include "cubin_info.h"
#include "kshim/image/cubin.h"

namespace kshim::image {
namespace {

constexpr std::uint8_t kTypeMask = 0xf;
constexpr std::uint8_t kFunction = 2;  // STT_FUNC
constexpr std::uint8_t kEntry = 0x10;  // STO_CUDA_ENTRY: a kernel, not a device function
constexpr std::string_view kInfo = ".nv.info.";
constexpr std::string_view kShared = ".nv.shared.";
/// From compute capability 9.0 on, 1 KiB that the driver reserves is in front of a block's shared memory,
/// once the cubin is linked.
constexpr std::uint64_t kReservedShared = 1024;
constexpr std::uint16_t kLinked = 2;  // ET_EXEC

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

void raise(std::uint32_t& target, std::uint32_t value) noexcept {
  if (target == KernelInfo::kUnknown || value > target) target = value;
}

/// Registers and stack: .nv.info has them of all kernels, by symbol.
void read_by_symbol(Bytes records, std::span<KernelSlot> kernels) noexcept {
  InfoWalk walk(records);
  for (InfoRecord record; walk.next(record);) {
    const auto subject = read_le<std::uint32_t>(record.bytes, 0);
    const auto value = read_le<std::uint32_t>(record.bytes, 4);
    if (!subject || !value) continue;
    const auto at =
        std::lower_bound(kernels.begin(), kernels.end(), std::uint64_t{*subject},
                         [](const KernelSlot& each, std::uint64_t symbol) { return each.symbol < symbol; });
    if (at == kernels.end() || at->symbol != *subject) continue;
    if (record.attribute == Attribute::regcount) at->info.registers = *value;
    if (record.attribute == Attribute::frame_size || record.attribute == Attribute::min_stack_size)
      raise(at->info.local_bytes, *value);
  }
}

/// Parameters and limits: .nv.info.NAME.
void read_own(Bytes records, KernelInfo& kernel) noexcept {
  InfoWalk walk(records);
  for (InfoRecord record; walk.next(record);) {
    if (record.attribute == Attribute::cbank_param_size) kernel.parameter_bytes = record.value;
    if (is_parameter(record.attribute)) ++kernel.parameter_count;
    if (record.attribute == Attribute::max_threads || record.attribute == Attribute::reqntid)
      kernel.max_threads = product(record.bytes);
  }
}

/// The kernel that a section belongs to: it names the kernel's .text section and ends with its name.
KernelInfo* owner_of(const ElfSection& section, std::string_view prefix,
                     std::span<KernelSlot> by_section) noexcept {
  auto at =
      std::lower_bound(by_section.begin(), by_section.end(), section.info,
                       [](const KernelSlot& each, std::uint32_t index) { return each.section < index; });
  // No compiler puts several kernels into one .text section: the first one with the name counts.
  constexpr int kMaxAlike = 16;
  for (int i = 0; i < kMaxAlike && at != by_section.end() && at->section == section.info; ++i, ++at)
    if (section.name.substr(prefix.size()) == at->info.name) return &at->info;
  return nullptr;
}

}  // namespace

Result<std::size_t> CubinReader::describe(std::span<KernelSlot> kernels) const noexcept {
  for (KernelSlot& kernel : kernels) {
    kernel.info.shared_bytes = 0;
    kernel.info.local_bytes = 0;
    kernel.info.constant_bytes = 0;
    kernel.info.parameter_bytes = 0;
  }
  const auto order = [kernels](auto member) {
    std::sort(kernels.begin(), kernels.end(),
              [member](const KernelSlot& a, const KernelSlot& b) { return a.*member < b.*member; });
  };
  order(&KernelSlot::section);
  ElfSection of_all;
  std::uint32_t constants = 0;
  for (std::uint32_t at = 1; at < elf_.section_count(); ++at) {
    const auto section = elf_.section(at);
    if (!section) return section.error();
    if (!section->name.starts_with(".nv.")) continue;
    if (section->name == ".nv.constant3") {
      constants = to_u32(section->size);
    } else if (section->name == ".nv.info") {
      of_all = *section;
    } else if (section->name.starts_with(kInfo)) {
      if (KernelInfo* kernel = owner_of(*section, kInfo, kernels)) read_own(section->bytes, *kernel);
    } else if (section->name.starts_with(kShared)) {
      KernelInfo* kernel = owner_of(*section, kShared, kernels);
      const bool has_reserved = elf_.type() == kLinked && arch_.cc >= ComputeCapability{9, 0};
      const std::uint64_t reserved = has_reserved && section->size >= kReservedShared ? kReservedShared : 0;
      if (kernel != nullptr) kernel->shared_bytes = to_u32(section->size - reserved);
    }
  }
  // The upper byte of a .text section's sh_info counts registers too: in CUDA 8 and before that is the only
  // place.
  for (KernelSlot& kernel : kernels) {
    const auto text = elf_.section(kernel.section);
    if (text && text->info >> 24 != 0) kernel.info.registers = text->info >> 24;
  }
  order(&KernelSlot::symbol);
  read_by_symbol(of_all.bytes, kernels);
  for (KernelSlot& kernel : kernels) kernel.info.constant_bytes = constants;
  return kernels.size();
}

Result<KernelInfo> CubinReader::kernel_of(const KernelName& name) const noexcept {
  KernelSlot slot{{}, name.symbol, name.section};
  slot.info.name = name.name;
  slot.info.code_bytes = name.code_bytes;
  const auto described = describe({&slot, 1});
  if (!described) return described.error();
  return slot.info;
}

Result<KernelName> CubinReader::next_name(std::uint64_t& cursor) const noexcept {
  const std::uint64_t count = elf_.symbol_count(symbols_);
  while (cursor < count) {
    const std::uint64_t index = cursor++;
    const auto symbol = elf_.symbol(symbols_, index);
    if (!symbol) return symbol.error();
    if ((symbol->info & kTypeMask) != kFunction || (symbol->other & kEntry) == 0 || symbol->section == 0)
      continue;
    return KernelName{symbol->name, symbol->size, index, symbol->section};
  }
  return Error{Errc::not_found};
}

Result<KernelInfo> CubinReader::next_kernel(std::uint64_t& cursor) const noexcept {
  const auto name = next_name(cursor);
  if (!name) return name.error();
  return kernel_of(*name);
}

Result<KernelInfo> CubinReader::find_kernel(std::string_view name) const noexcept {
  for (std::uint64_t cursor = 0;;) {
    const auto candidate = next_name(cursor);
    if (!candidate) return candidate.error();
    if (candidate->name == name) return kernel_of(*candidate);
  }
}

Result<ParameterInfo> CubinReader::parameter(std::string_view kernel, std::uint32_t ordinal) const noexcept {
  for (std::uint32_t index = 1; index < elf_.section_count(); ++index) {
    const auto section = elf_.section(index);
    if (!section) return section.error();
    if (!section->name.starts_with(kInfo) || section->name.substr(kInfo.size()) != kernel) continue;
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

}  // namespace kshim::image

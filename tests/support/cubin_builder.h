// SPDX-License-Identifier: Apache-2.0
// Composes small cubins (ELF, machine 190) in test code, with the sections that kshim reads. Layout:
// docs/internals/image-format.md.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "byte_buffer.h"
#include "kshim/image/arch.h"

namespace kshim::test {

struct KernelSpec {
  std::string name;
  std::uint32_t registers = 16;
  std::uint32_t shared_bytes = 0;  ///< what .nv.shared.NAME says
  std::uint32_t frame_bytes = 0;
  std::uint32_t max_threads = 0;                                      ///< 0: no attribute
  std::vector<std::pair<std::uint16_t, std::uint16_t>> parameters{};  ///< offset, size
  bool wide_parameters = false;                                       ///< KPARAM_INFO_V2
};
struct GlobalSpec {
  std::string name;
  std::uint64_t size = 4;
  bool constant = false;
  bool managed = false;
  Buffer initial{};
};
struct CubinSpec {
  image::Arch arch;
  std::uint8_t abi_version = 8;
  std::vector<KernelSpec> kernels{};
  std::vector<GlobalSpec> globals{};
  std::string device_function{};      ///< a STT_FUNC that is no kernel
  std::string command_line{};         ///< for .note.nv.tkinfo
  bool arch_specific_record = false;  ///< .nv.compat 02 09 01
  bool arch_specific_flag = false;    ///< the bit of e_flags, as ptxas 12 sets it
};

/// An ELF file under construction: sections in the order of their addition, symbols last.
class ElfBuilder {
 public:
  static constexpr std::uint32_t kNoBits = 8;
  std::uint16_t machine = 190;
  std::uint8_t os_abi = 0x41;
  std::uint8_t abi_version = 8;
  std::uint32_t flags = 0;

  /// Returns the section's index.
  std::uint16_t section(std::string name, std::uint32_t type, Buffer bytes,
                        std::uint64_t size_without_bytes = 0, std::uint32_t info = 0,
                        std::uint64_t section_flags = 0, std::uint64_t address = 0) {
    sections_.push_back(
        {std::move(name), type, std::move(bytes), size_without_bytes, info, section_flags, address});
    return static_cast<std::uint16_t>(sections_.size());
  }
  /// Returns the symbol's index.
  std::uint32_t symbol(std::string_view name, std::uint8_t info, std::uint8_t other, std::uint16_t section,
                       std::uint64_t value, std::uint64_t size) {
    if (symbols_.empty()) symbols_.resize(24);
    append(symbols_, static_cast<std::uint32_t>(strings_.size()));
    append(strings_, name);
    append(strings_, std::uint8_t{0});
    append(symbols_, info);
    append(symbols_, other);
    append(symbols_, section);
    append(symbols_, value);
    append(symbols_, size);
    return static_cast<std::uint32_t>(symbols_.size() / 24 - 1);
  }

  Buffer build() {
    const auto strtab = section(".strtab", 3, strings_);
    if (!symbols_.empty()) section(".symtab", 2, symbols_, 0, 0);
    Buffer names(1);
    std::vector<std::uint32_t> name_offsets;
    sections_.push_back({".shstrtab", 3, {}, 0, 0, 0, 0});
    for (const Section& each : sections_) {
      name_offsets.push_back(static_cast<std::uint32_t>(names.size()));
      append(names, std::string_view(each.name));
      append(names, std::uint8_t{0});
    }
    sections_.back().bytes = names;
    Buffer out(64);
    Buffer table(64);
    for (std::size_t index = 0; index < sections_.size(); ++index) {
      const Section& each = sections_[index];
      pad_to(out, 8);
      append(table, name_offsets[index]);
      append(table, each.type);
      append(table, each.flags);
      append(table, each.address);
      append(table, std::uint64_t{out.size()});
      append(table, each.bytes.empty() ? each.size : std::uint64_t{each.bytes.size()});
      append(table, each.type == 2 ? std::uint32_t{strtab} : 0U);
      append(table, each.info);
      append(table, std::uint64_t{8});
      append(table, each.type == 2 ? std::uint64_t{24} : std::uint64_t{0});
      append(out, each.bytes);
    }
    pad_to(out, 8);
    const std::uint64_t table_offset = out.size();
    append(out, table);
    const char ident[] =
        "\x7f"
        "ELF\x02\x01\x01";
    std::memcpy(out.data(), ident, 7);
    put(out, 7, os_abi);
    put(out, 8, abi_version);
    put(out, 16, std::uint16_t{2});
    put(out, 18, machine);
    put(out, 20, std::uint32_t{1});
    put(out, 40, table_offset);
    put(out, 48, flags);
    put(out, 52, std::uint16_t{64});
    put(out, 54, std::uint16_t{56});
    put(out, 58, std::uint16_t{64});
    put(out, 60, static_cast<std::uint16_t>(sections_.size() + 1));
    put(out, 62, static_cast<std::uint16_t>(sections_.size()));
    return out;
  }

 private:
  struct Section {
    std::string name;
    std::uint32_t type;
    Buffer bytes;
    std::uint64_t size;
    std::uint32_t info;
    std::uint64_t flags;
    std::uint64_t address;
  };
  std::vector<Section> sections_;
  Buffer strings_ = Buffer(1);
  Buffer symbols_;
};

inline void append_info(Buffer& out, std::uint8_t attribute, std::initializer_list<std::uint32_t> words) {
  append(out, std::uint8_t{4});
  append(out, attribute);
  append(out, static_cast<std::uint16_t>(words.size() * 4));
  for (const std::uint32_t word : words) append(out, word);
}

inline Buffer kernel_info(const KernelSpec& kernel) {
  Buffer info;
  std::uint32_t end = 0;
  for (std::size_t ordinal = kernel.parameters.size(); ordinal-- > 0;) {  // ptxas writes the last one first
    const auto [offset, size] = kernel.parameters[ordinal];
    const std::uint32_t place = static_cast<std::uint32_t>(ordinal) | std::uint32_t{offset} << 16;
    append_info(
        info, kernel.wide_parameters ? 0x45 : 0x17,
        {0, place, kernel.wide_parameters ? std::uint32_t{size} : std::uint32_t{size} << 18 | 0x1f000});
    if (offset + std::uint32_t{size} > end) end = offset + std::uint32_t{size};
  }
  append(info, std::uint16_t{0x1903});  // CBANK_PARAM_SIZE, short form
  append(info, static_cast<std::uint16_t>(end));
  if (kernel.max_threads != 0) append_info(info, 0x05, {kernel.max_threads, 1, 1});
  return info;
}

inline Buffer build_cubin(const CubinSpec& spec) {
  constexpr std::uint32_t kCudaInfo = 0x70000000;
  constexpr std::uint32_t kCompat = 0x70000086;
  ElfBuilder elf;
  elf.abi_version = spec.abi_version;
  elf.os_abi = spec.abi_version >= 8 ? 0x41 : 0x33;
  const unsigned number = spec.arch.cc.number();
  if (spec.abi_version >= 8)
    elf.flags = 0x6000002U | number << 8 | (spec.arch_specific_flag ? 0x8U : 0U);
  else  // the virtual architecture stands in front
    elf.flags = 0x500U | number << 16 | number | (spec.arch_specific_flag ? 0x800U : 0U);
  if (!spec.command_line.empty()) elf.section(".note.nv.tkinfo", 7, to_buffer("ptxas " + spec.command_line));
  if (spec.arch_specific_record) {
    Buffer compat;
    append(compat, std::uint32_t{0x00010902});
    elf.section(".nv.compat", kCompat, compat);
  }
  Buffer shared_info;
  for (const KernelSpec& kernel : spec.kernels) {
    const auto text = elf.section(".text." + kernel.name, 1, Buffer(128));
    const auto symbol = elf.symbol(kernel.name, 0x12, 0x10, text, 0, 128);
    append_info(shared_info, 0x2f, {symbol, kernel.registers});
    append_info(shared_info, 0x11, {symbol, kernel.frame_bytes});
    elf.section(".nv.info." + kernel.name, kCudaInfo, kernel_info(kernel), 0, text);
    if (kernel.shared_bytes != 0)
      elf.section(".nv.shared." + kernel.name, ElfBuilder::kNoBits, {}, kernel.shared_bytes, text);
  }
  if (!spec.device_function.empty())
    elf.symbol(spec.device_function, 0x12, 0, elf.section(".text." + spec.device_function, 1, Buffer(64)), 0,
               64);
  elf.section(".nv.info", kCudaInfo, shared_info);
  for (const GlobalSpec& global : spec.globals) {
    const std::string name = global.constant          ? ".nv.constant3"
                             : global.initial.empty() ? ".nv.global"
                                                      : ".nv.global.init";
    const bool zeros = global.initial.empty() && !global.constant;
    const auto index =
        elf.section(name, zeros ? ElfBuilder::kNoBits : 1, zeros ? Buffer{} : global.initial, global.size);
    elf.symbol(global.name, 0x01, global.managed ? 4 : 0, index, 0, global.size);
  }
  return elf.build();
}

}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
// Host files around fatbins, composed for the tests of find_device_code().
#pragma once
#include <elf.h>

#include <string>
#include <vector>

#include "analyzer/device_code/device_code.h"
#include "cubin_builder.h"
#include "fatbin_builder.h"
#include "tests/support/command_names.h"

namespace kshim::test {

inline constexpr std::uint64_t kLoaded = SHF_ALLOC;
inline constexpr std::uint64_t kFatbinAddress = 0x4000;
inline constexpr std::uint64_t kWrapperAddress = 0x8000;
inline constexpr std::uint64_t kPartAddress = 0xc000;
inline constexpr std::uint64_t kListAddress = 0xf000;

inline FatbinBuilder one(unsigned sm) { return FatbinBuilder{}.cubin(arch_of(sm)); }

/// A host file: an ET_EXEC without program headers unless changed.
inline ElfBuilder host_elf(std::uint16_t machine = EM_X86_64) {
  ElfBuilder elf;
  elf.machine = machine;
  elf.os_abi = 0;
  elf.abi_version = 0;
  return elf;
}

/// Appends on a multiple of 8, as linkers do; returns where.
inline std::uint64_t append_fatbin(Buffer& out, const FatbinBuilder& fatbin) {
  pad_to(out, 8);
  const std::uint64_t at = out.size();
  append(out, Bytes(fatbin.build()));
  return at;
}

inline Buffer wrapper(std::uint32_t version, std::uint64_t fatbin, std::uint64_t list) {
  Buffer out;
  append(out, image::kWrapperMagic);
  append(out, version);
  append(out, fatbin);
  append(out, list);
  return out;
}

inline Buffer addresses(std::initializer_list<std::uint64_t> values) {
  Buffer out;
  for (const std::uint64_t value : values) append(out, value);
  return out;
}

inline void append_relocation(Buffer& out, std::uint64_t place, std::uint64_t type, std::uint64_t symbol,
                              std::uint64_t addend) {
  append(out, place);
  append(out, symbol << 32 | type);
  append(out, addend);
}

/// Module sm_90 in section 1, parts compute_70 and compute_80 in 2, a version-2 wrapper in 3, its list in 4.
inline Buffer linked_program(std::initializer_list<std::uint64_t> list,
                             std::uint64_t fatbin = kFatbinAddress) {
  auto elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS, FatbinBuilder{}.cubin(arch_of(90)).build(), 0, 0, kLoaded,
              kFatbinAddress);
  Buffer parts;
  for (unsigned sm : {70U, 80U}) append_fatbin(parts, FatbinBuilder{}.ptx(arch_of(sm), {9, 0}));
  elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, kLoaded, kPartAddress);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper(2, fatbin, kListAddress), 0, 0, kLoaded,
              kWrapperAddress);
  elf.section(".data", SHT_PROGBITS, addresses(list), 0, 0, kLoaded, kListAddress);
  return elf.build();
}

struct PeSectionSpec {
  std::string name;
  std::uint32_t flags = 0x40000040;
  Buffer bytes{};
  std::uint32_t address = 0;
};

/// A PE32+ file with sections at multiples of 512.
inline Buffer build_pe(const std::vector<PeSectionSpec>& sections, std::uint16_t machine = 0x8664,
                       std::uint64_t image_base = 0x180000000) {
  constexpr std::size_t kPe = 0x80;
  constexpr std::uint16_t kOptional = 240;
  constexpr std::size_t kTable = kPe + 24 + kOptional;
  Buffer out(kTable + 40 * sections.size());
  put(out, 0, std::uint16_t{0x5a4d});
  put(out, 0x3c, std::uint32_t{kPe});
  put(out, kPe, std::uint32_t{0x4550});
  put(out, kPe + 4, machine);
  put(out, kPe + 6, static_cast<std::uint16_t>(sections.size()));
  put(out, kPe + 20, kOptional);
  put(out, kPe + 24, std::uint16_t{0x20b});
  put(out, kPe + 48, image_base);
  for (std::size_t index = 0; index < sections.size(); ++index) {
    const PeSectionSpec& each = sections[index];
    pad_to(out, 512);
    const std::size_t header = kTable + 40 * index;
    std::memcpy(out.data() + header, each.name.data(), each.name.size() < 8 ? each.name.size() : 8);
    put(out, header + 8, static_cast<std::uint32_t>(each.bytes.size()));
    put(out, header + 12, each.address);
    put(out, header + 20, static_cast<std::uint32_t>(out.size()));
    append(out, Bytes(each.bytes));
    pad_to(out, 512);
    put(out, header + 16, static_cast<std::uint32_t>((each.bytes.size() + 511) / 512 * 512));
    put(out, header + 36, each.flags);
  }
  return out;
}

/// "sm_90a compute_90", parts of relocatable code in brackets.
inline std::string labels(const DeviceCode& code) {
  std::string out;
  for (const CodeImage& image : code.images) {
    const std::string name(image::to_name(image.candidate.kind, image.candidate.arch).view());
    out += (out.empty() ? "" : " ") + (image.relocatable ? "(" + name + ")" : name);
  }
  return out;
}

/// The images of a module, then those of its parts: "sm_90 + compute_90".
inline std::string labels(const DeviceCode& code, const CodeModule& module) {
  std::string out;
  const auto add = [&](std::uint32_t index, const char* separator) {
    const auto& candidate = code.images.at(index).candidate;
    if (!out.empty()) out += separator;
    out += image::to_name(candidate.kind, candidate.arch).view();
  };
  for (std::uint32_t index = module.first; index < module.first + module.count; ++index) add(index, " ");
  for (const std::uint32_t part : module.parts) add(part, " + ");
  return out;
}

}  // namespace kshim::test

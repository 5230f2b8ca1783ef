// SPDX-License-Identifier: Apache-2.0
// Where device code lies in whole files. What strangers make of them: device_code_hostile_test.cpp.
#include "analyzer/device_code/device_code.h"

#include <gmock/gmock.h>

#include "device_code_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ImageKind;
using image::Suffix;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

FatbinBuilder part(unsigned sm) { return one(sm).ptx(arch_of(sm), {9, 0}); }

TEST(DeviceCode, OfAnElfFileIsInItsFatbinSection) {
  Buffer fatbins;
  append_fatbin(fatbins, FatbinBuilder{});
  const std::uint64_t second = append_fatbin(
      fatbins,
      FatbinBuilder{}.cubin(arch_of(75)).cubin(arch_of(90, Suffix::a)).ptx(arch_of(120, Suffix::f), {9, 0}));
  auto elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, kLoaded, kFatbinAddress);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(code.host, HostFormat::elf);
  EXPECT_EQ(code.machine, "x86-64");
  EXPECT_EQ(code.fatbins, 2U);
  EXPECT_EQ(labels(code), "sm_75 sm_90a compute_120f");
  ASSERT_THAT(code.modules, SizeIs(2));
  EXPECT_EQ(code.modules[0].count, 0U);
  EXPECT_EQ(labels(code, code.modules[1]), "sm_75 sm_90a compute_120f");
  EXPECT_EQ(code.modules[1].offset, 64 + second);
  EXPECT_EQ(code.images[2].candidate.isa, (image::Version{9, 0}));
  EXPECT_EQ(text_of(code.images[0].payload).substr(0, 5), "cubin");
  EXPECT_EQ(code.images[0].offset, 64 + second + 16);
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, StandsInOtherDataToo) {
  for (const char* name : {".rodata", ".lrodata", ".ldata", ".data", ".cask_resource"}) {
    Buffer data(72, std::byte{0x5a});
    const std::uint64_t first = append_fatbin(data, one(80));
    data.resize(data.size() + 1000, std::byte{0x5a});
    append_fatbin(data, one(90));
    auto elf = host_elf(EM_AARCH64);
    elf.section(name, SHT_PROGBITS, data, 0, 0, SHF_ALLOC | SHF_WRITE, 0x1000);
    const Buffer file = elf.build();
    const DeviceCode code = find_device_code(file);
    EXPECT_EQ(code.machine, "aarch64");
    EXPECT_EQ(labels(code), "sm_80 sm_90") << name;
    ASSERT_THAT(code.modules, SizeIs(2)) << name;
    EXPECT_EQ(code.modules[0].offset, 64 + first);
    EXPECT_EQ(code.searched, 72 + 1000) << name;
    EXPECT_THAT(code.damage, IsEmpty()) << name;
  }
}

// libcudf's resource compiler packs its LTO fragments byte by byte.
TEST(DeviceCode, InDataStandsAtAnyOffset) {
  Buffer data(3, std::byte{0x5a});
  for (const unsigned sm : {70U, 75U, 80U, 90U}) {
    append(data, Bytes(one(sm).build()));
    data.resize(data.size() + (sm == 80 ? 0 : 5), std::byte{0x5a});
  }
  auto elf = host_elf();
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, 0x1000);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_70 sm_75 sm_80 sm_90");
  EXPECT_THAT(code.damage, IsEmpty());
}

// ONNX Runtime embeds TensorRT's fused attention so.
TEST(DeviceCode, OfCubinsInDataIsAModuleEach) {
  Buffer data(5, std::byte{0x5a});
  std::vector<std::uint64_t> starts;
  for (const unsigned sm : {80U, 90U}) {
    starts.push_back(64 + data.size());
    append(data, Bytes(build_cubin({.arch = arch_of(sm), .kernels = {{.name = "attention"}}})));
    data.resize(data.size() + 11, std::byte{0x7f});
  }
  const std::size_t cut = data.size();
  append(data, Bytes(build_cubin({.arch = arch_of(100), .kernels = {{.name = "cut"}}})));
  data.resize(cut + 100);
  auto elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS, one(70).build(), 0, 0, SHF_ALLOC, 0x4000);
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, 0x1000);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_70 sm_80 sm_90") << "what only starts like a cubin is none";
  EXPECT_EQ(code.fatbins, 1U);
  ASSERT_THAT(code.modules, SizeIs(3));
  EXPECT_FALSE(code.modules[0].embedded);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(code.modules[i + 1].offset, starts[i] + 88);
    EXPECT_TRUE(code.modules[i + 1].embedded);
  }
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, OfUnknownKindsIsToldOnceAKind) {
  Buffer fatbins;
  for (const unsigned kind : {0x99U, 0x77U, 0x99U}) {
    const auto at = append_fatbin(fatbins, one(90).cubin(arch_of(80)));
    put(fatbins, at + 16, static_cast<std::uint16_t>(kind));
  }
  auto elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, SHF_ALLOC, 0x4000);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_80 sm_80 sm_80");
  ASSERT_THAT(code.damage, SizeIs(2));
  for (const Damage& each : code.damage) EXPECT_EQ(each.of, Damage::Of::unknown_kind);
  EXPECT_EQ(code.modules[0].damage, 1U);
  EXPECT_EQ(code.modules[1].damage, 2U);
  EXPECT_EQ(code.modules[2].damage, 1U);
}

TEST(DeviceCode, IsNotLookedForInCodeNorInWhatIsNotLoaded) {
  Buffer data;
  append_fatbin(data, one(80));
  auto elf = host_elf();
  elf.section(".text", SHT_PROGBITS, data, 0, 0, SHF_ALLOC | SHF_EXECINSTR, 0x1000);
  elf.section(".debug_str", SHT_PROGBITS, data, 0, 0, 0, 0);
  elf.section(".eh_frame", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, 0x2000);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_THAT(code.images, IsEmpty());
  EXPECT_EQ(code.searched, 0U);
}

TEST(DeviceCode, ThatOnlyLooksLikeItInDataIsNeitherListedNorDamage) {
  Buffer data(64);
  append(data, image::kFatbinMagic);
  append(data, std::uint32_t{0x00100001});
  append(data, UINT64_MAX / 2);
  data.resize(data.size() + 4096, std::byte{1});
  auto elf = host_elf();
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, 0x1000);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(code.fatbins, 0U);
  EXPECT_THAT(code.damage, IsEmpty());
}

/// A program of relocatable code: module sm_90 (and one sm_70 that has nothing to do with it), two parts.
struct LinkedProgram {
  ElfBuilder elf = host_elf();
  std::uint64_t second_part = 0;
  LinkedProgram(std::uint64_t fatbin_pointer, std::uint64_t list_pointer) {
    Buffer fatbins;
    append_fatbin(fatbins, one(70));
    append_fatbin(fatbins, one(90));
    Buffer parts;
    append_fatbin(parts, part(90));
    second_part = kPartAddress + append_fatbin(parts, FatbinBuilder{}.ptx(arch_of(80), {9, 0}));
    Buffer wrappers = wrapper(1, kFatbinAddress, 0);
    append(wrappers, Bytes(wrapper(2, fatbin_pointer, list_pointer)));
    elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, kLoaded, kFatbinAddress);
    elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, kLoaded, kPartAddress);
    elf.section(".nvFatBinSegment", SHT_PROGBITS, wrappers, 0, 0, kLoaded, kWrapperAddress);
  }
};
constexpr std::uint64_t kSecondFatbin = kFatbinAddress + 16 + 64 + 8;

void expect_linked(const Buffer& file, const char* parts) {
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_70 sm_90 (sm_90) (compute_90) (compute_80)");
  ASSERT_THAT(code.modules, SizeIs(2));
  EXPECT_EQ(code.fatbins, 4U);
  EXPECT_EQ(labels(code, code.modules[0]), "sm_70");
  EXPECT_EQ(labels(code, code.modules[1]), parts);
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, OfRelocatablePartsBelongsToTheModuleOfTheirWrapper) {
  LinkedProgram program(kSecondFatbin, kListAddress);
  program.elf.section(".data", SHT_PROGBITS, addresses({program.second_part, 0}), 0, 0, kLoaded,
                      kListAddress);
  expect_linked(program.elf.build(), "sm_90 + compute_80");
}

TEST(DeviceCode, OfPartsWhoseListConstructorsFillBelongsToEveryLinkedModule) {
  LinkedProgram program(kSecondFatbin, kListAddress);
  program.elf.section(".bss", SHT_NOBITS, {}, 64, 0, kLoaded, kListAddress);
  expect_linked(program.elf.build(), "sm_90 + compute_90 + compute_80");
}

// nvcc -gencode arch=compute_75,code=lto_75 -gencode arch=compute_80,code=sm_80 registers both; cuSPARSE
// links its own.
TEST(DeviceCode, OfAFileWithLtoIrIsRegisteredWhereAWrapperPoints) {
  for (const bool ltoir : {false, true}) {
    Buffer fatbins;
    const std::uint64_t own = append_fatbin(fatbins, one(80));
    const std::uint64_t registered = append_fatbin(fatbins, ltoir ? one(90).ltoir(arch_of(75)) : one(90));
    auto elf = host_elf();
    elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, kLoaded, kFatbinAddress);
    elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper(1, kFatbinAddress + registered, 0), 0, 0, kLoaded,
                kWrapperAddress);
    const Buffer file = elf.build();
    const DeviceCode code = find_device_code(file);
    ASSERT_THAT(code.modules, SizeIs(2));
    EXPECT_EQ(own, 0U);
    EXPECT_FALSE(code.modules[0].registered);
    EXPECT_EQ(code.modules[1].registered, ltoir) << "relocations are not read for nothing";
    EXPECT_THAT(code.damage, IsEmpty());
  }
}

TEST(DeviceCode, IsFoundThroughRelativeRelocations) {
  for (const auto& [machine, type] :
       {std::pair{EM_X86_64, R_X86_64_RELATIVE}, {EM_AARCH64, R_AARCH64_RELATIVE}}) {
    LinkedProgram program(0, 0);
    program.elf.machine = static_cast<std::uint16_t>(machine);
    program.elf.section(".data", SHT_PROGBITS, addresses({0, 0}), 0, 0, kLoaded, kListAddress);
    const auto relative = static_cast<std::uint64_t>(type);
    Buffer relocations;  // not sorted
    append_relocation(relocations, kListAddress, relative, 0, program.second_part);
    append_relocation(relocations, kWrapperAddress + 24 + 16, relative, 0, kListAddress);
    append_relocation(relocations, kWrapperAddress + 24 + 8, relative, 0, kSecondFatbin);
    program.elf.section(".rela.dyn", SHT_RELA, relocations, 0, 0, kLoaded, 0x100);
    expect_linked(program.elf.build(), "sm_90 + compute_80");
  }
}

TEST(DeviceCode, OfAnObjectIsFoundThroughSymbols) {
  LinkedProgram program(0, 0);  // sections 1 (.nv_fatbin), 2 (parts), 3 (wrappers), 4 (list)
  program.elf.section(".data.rel.ro", SHT_PROGBITS, addresses({0, 0}), 0, 0, kLoaded);
  constexpr std::uint8_t kSectionSymbol = 3;
  std::uint64_t symbols[5] = {};
  for (std::uint16_t section = 1; section <= 4; ++section)
    symbols[section] = program.elf.symbol("", kSectionSymbol, 0, section, 0, 0);
  // The builder puts .strtab and .symtab behind the sections added so far and the two below.
  constexpr std::uint32_t kSymbolTable = 8;
  Buffer wrappers;
  append_relocation(wrappers, 24 + 8, R_X86_64_64, symbols[1], kSecondFatbin - kFatbinAddress);
  append_relocation(wrappers, 24 + 16, R_X86_64_64, symbols[4], 0);
  Buffer list;
  append_relocation(list, 0, R_X86_64_64, symbols[2], program.second_part - kPartAddress);
  program.elf.section(".rela.nvFatBinSegment", SHT_RELA, wrappers, 0, 3);
  program.elf.section(".rela.data.rel.ro", SHT_RELA, list, 0, 4);
  Buffer file = program.elf.build();
  put(file, offsetof(Elf64_Ehdr, e_type), std::uint16_t{ET_REL});
  const auto table = read_le<std::uint64_t>(file, offsetof(Elf64_Ehdr, e_shoff));
  for (const std::uint64_t section : {5U, 6U})
    put(file, *table + section * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_link), kSymbolTable);
  expect_linked(file, "sm_90 + compute_80");
}

TEST(DeviceCode, OfAnUnlinkedObjectIsRawMaterialOfNoModule) {
  Buffer parts;
  append_fatbin(parts, part(90));
  auto elf = host_elf();
  elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, kLoaded);
  const Buffer file = elf.build();
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "(sm_90) (compute_90)");
  EXPECT_THAT(code.modules, IsEmpty());
}

TEST(DeviceCode, WithoutSectionHeadersIsFoundThroughTheSegments) {
  Buffer file(64 + 56);
  std::memcpy(file.data(),
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  put(file, 18, std::uint16_t{EM_X86_64});
  put(file, 32, std::uint64_t{64});
  put(file, 54, std::uint16_t{56});
  put(file, 56, std::uint16_t{1});
  append_fatbin(file, one(86));
  put(file, 64, std::uint32_t{PT_LOAD});
  put(file, 68, std::uint32_t{PF_R | PF_X});  // linkers used to put .rodata beside .text
  put(file, 64 + 32, std::uint64_t{file.size()});
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(labels(code), "sm_86");
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, OfA32BitHostIsFound) {
  Buffer file(64);
  std::memcpy(file.data(),
              "\x7f"
              "ELF\x01\x01\x01",
              7);
  put(file, 18, std::uint16_t{EM_386});
  append_fatbin(file, one(30));
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(code.machine, "x86");
  EXPECT_EQ(labels(code), "sm_30");
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, OfAPeFileIsInSectionsWithShortNames) {
  Buffer fatbins;
  append_fatbin(fatbins, one(70));
  append_fatbin(fatbins, one(90));
  Buffer parts;
  append_fatbin(parts, part(90));
  append_fatbin(parts, FatbinBuilder{}.ptx(arch_of(80), {9, 0}));
  constexpr std::uint64_t kBase = 0x180000000;
  Buffer data;
  append_fatbin(data, one(75));
  const std::uint64_t list = data.size();
  append(data, kBase + kPartAddress + 16 + 2 * 72);
  append(data, std::uint64_t{0});
  const Buffer wrappers = wrapper(2, kBase + kSecondFatbin, kBase + kListAddress + list);
  const Buffer file = build_pe({{".text", 0x60000020, data, 0x1000},
                                {".nv_fatb", 0x40000040, fatbins, kFatbinAddress},
                                {".nvFatBi", 0x40000040, wrappers, kWrapperAddress},
                                {"__nv_rel", 0x40000040, parts, kPartAddress},
                                {".rdata", 0x40000040, data, kListAddress}});
  const DeviceCode code = find_device_code(file);
  EXPECT_EQ(code.host, HostFormat::pe);
  EXPECT_EQ(code.machine, "x86-64");
  EXPECT_EQ(labels(code), "sm_70 sm_90 (sm_90) (compute_90) (compute_80) sm_75");
  ASSERT_THAT(code.modules, SizeIs(3));
  EXPECT_EQ(labels(code, code.modules[1]), "sm_90 + compute_80");
  EXPECT_THAT(code.damage, IsEmpty());
}

TEST(DeviceCode, OfBareFiles) {
  Buffer several;
  append_fatbin(several, one(80));
  append_fatbin(several, one(90));
  EXPECT_EQ(labels(find_device_code(several)), "sm_80 sm_90");
  EXPECT_THAT(find_device_code(several).modules, SizeIs(2));

  Buffer wrapped = wrapper(1, 0x7f0000001000, 0);
  append_fatbin(wrapped, one(86));
  EXPECT_EQ(labels(find_device_code(wrapped)), "sm_86");

  const Buffer cubin = build_cubin({.arch = arch_of(120)});
  const DeviceCode bare = find_device_code(cubin);
  EXPECT_EQ(labels(bare), "sm_120");
  EXPECT_EQ(bare.host, HostFormat::none);
  ASSERT_THAT(bare.modules, SizeIs(1));
  EXPECT_EQ(bare.images[0].bytes, cubin.size());

  Buffer raw = cubin;  // nvcc -dc -cubin
  put(raw, offsetof(Elf64_Ehdr, e_type), std::uint16_t{ET_REL});
  EXPECT_EQ(labels(find_device_code(raw)), "(sm_120)");

  const Buffer ptx = to_buffer("// comment\n.version 8.7\n.target sm_90a\n");
  EXPECT_EQ(labels(find_device_code(ptx)), "compute_90a");
  EXPECT_EQ(find_device_code(ptx).images[0].candidate.isa, (image::Version{8, 7}));
}

TEST(DeviceCode, OfCuda8IsNotArchitectureSpecific) {
  // e_flags of sm_60 in NCCL 2.2 and TensorFlow 1.4, both by CUDA 8: the bit that says `a` since sm_90.
  Buffer cubin = build_cubin({.arch = arch_of(60), .abi_version = 7});
  put(cubin, offsetof(Elf64_Ehdr, e_flags), std::uint32_t{0x3c0d3c});
  EXPECT_EQ(labels(find_device_code(cubin)), "sm_60");
  cubin = build_cubin({.arch = arch_of(90), .abi_version = 7});
  put(cubin, offsetof(Elf64_Ehdr, e_flags), std::uint32_t{0x5a0d5a});
  EXPECT_EQ(labels(find_device_code(cubin)), "sm_90a");
}

TEST(DeviceCode, OfLtoIrSaysItsArchitecture) {
  Buffer plain(64);  // as nvcc 13.0 -ltoir begins for lto_90, and for lto_90a
  put(plain, 0, std::uint32_t{0x7f4e43ed});
  put(plain, 16, std::uint32_t{40});
  put(plain, 26, std::uint16_t{900});
  put(plain, 32, std::uint32_t{0x63});
  EXPECT_EQ(labels(find_device_code(plain)), "lto_90");
  put(plain, 16, std::uint32_t{44});
  put(plain, 32, std::uint32_t{0x10020});
  EXPECT_EQ(labels(find_device_code(plain)), "lto_90a");
}

TEST(DeviceCode, OfOtherFilesIsNothing) {
  for (const char* text : {"", "MZ", "#!/bin/sh\n", ".version 1\n.text\n", "BC\xc0\xde",
                           "\x7f"
                           "EL"}) {
    const DeviceCode code = find_device_code(bytes_of(text));
    EXPECT_THAT(code.images, IsEmpty()) << text;
    EXPECT_THAT(code.damage, IsEmpty()) << text;
    EXPECT_EQ(code.host, HostFormat::none) << text;
  }
}

}  // namespace
}  // namespace kshim::test

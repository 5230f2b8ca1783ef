// SPDX-License-Identifier: Apache-2.0
// Modules of a file by their address, wherever they stand, and what is wrong with them.
#include <elf.h>
#include <gmock/gmock.h>

#include "analyze_fixture.h"
#include "analyzer/diagnose/scene.h"
#include "object_file_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using image::ImageKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kDataAddress = 0x5000;

class ObjectFilePlaces : public ObjectFileTest {};

FatbinBuilder fatbin(unsigned sm, const std::string& kernel) {
  return FatbinBuilder{}.cubin(arch_of(sm), cubin(sm, {kernel}));
}

TEST_F(ObjectFilePlaces, AFatbinAmongConstantsIsAModuleAsAnyOther) {
  Buffer data(40, std::byte{0x5a});
  const std::uint64_t at = append_fatbin(data, fatbin(80, "_Z6hiddenv"));
  ElfBuilder elf = host();
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, kDataAddress);
  const ObjectFile file = open(elf.build());
  EXPECT_THAT(file.module_at(kDataAddress + at).images.at(0).kernels, ElementsAre("_Z6hiddenv"));
  EXPECT_THAT(file.module_with_kernel("_Z6hiddenv").images, SizeIs(1));
  EXPECT_THAT(file.only_module_with_kernels().images, SizeIs(1));
  EXPECT_THAT(file.image_counts(), SizeIs(1));
  EXPECT_FALSE(file.has_relocatable_code());
}

TEST_F(ObjectFilePlaces, AnImageByItselfIsReadWhereItLies) {
  Buffer data(4, std::byte{0x5a});
  const std::uint64_t cubin_at = kDataAddress + data.size();
  append(data, Bytes(cubin(86, {"blur"}, "12.8")));
  data.push_back(std::byte{0});
  const std::uint64_t ptx_at = kDataAddress + data.size();
  const std::string text = ptx(80, "sharpen");
  append(data, text);
  data.push_back(std::byte{0});
  append(data, std::string_view(".visible .entry nobody() { ret; }"));
  ElfBuilder elf = host();
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, SHF_ALLOC, kDataAddress);
  const ObjectFile file = open(elf.build());
  EXPECT_THAT(file.code().modules, SizeIs(1)) << "the cubin: a text is not looked for";
  const FileModule loose = file.module_at(cubin_at);
  ASSERT_THAT(loose.images, SizeIs(1));
  EXPECT_EQ(loose.damage, "");
  EXPECT_THAT(loose.images[0].kernels, ElementsAre("blur"));
  EXPECT_EQ(loose.images[0].toolkit, (image::Version{12, 8}));
  const FileModule written = file.module_at(ptx_at);
  ASSERT_THAT(written.images, SizeIs(1));
  EXPECT_THAT(written.images[0].kernels, ElementsAre("sharpen"));
  EXPECT_EQ(written.images[0].bytes, text.size());
}

TEST_F(ObjectFilePlaces, FatbinOutsideKnownSectionsIsReadByAddress) {
  Buffer code(4, std::byte{0x90});  // nor is it aligned
  append(code, Bytes(fatbin(90, "_Z4codev").build()));
  ElfBuilder elf = host();
  elf.section(".text", SHT_PROGBITS, code, 0, 0, SHF_ALLOC | SHF_EXECINSTR, kDataAddress);
  const ObjectFile file = open(elf.build());
  EXPECT_THAT(file.code().modules, IsEmpty());
  EXPECT_THAT(file.module_at(kDataAddress + 4).images.at(0).kernels, ElementsAre("_Z4codev"));
}

/// A library: every pointer is a relocation, and zero in the file.
Buffer shared_library(bool linked) {
  Buffer fatbins;
  append_fatbin(fatbins, fatbin(70, "_Z5otherv"));
  const std::uint64_t second = kFatbinAddress + append_fatbin(fatbins, fatbin(90, "_Z4mainv"));
  Buffer parts;
  append_fatbin(parts, FatbinBuilder{}.ptx(arch_of(90), {8, 0}, ptx(90, "_Z1av")));
  const std::uint64_t last =
      kPartAddress + append_fatbin(parts, FatbinBuilder{}.ptx(arch_of(90), {9, 0}, ptx(90, "_Z1bv")));
  Buffer relocations;
  const auto point = [&](std::uint64_t place, std::uint64_t target) {
    append_relocation(relocations, place, R_X86_64_RELATIVE, 0, target);
  };
  point(kWrapperAddress + 8, second);
  point(kWrapperAddress + 16, kListAddress);
  point(kListAddress, kPartAddress);
  point(kListAddress + 8, last);
  ElfBuilder elf = host();
  elf.section(".rela.dyn", SHT_RELA, relocations, 0, 0, SHF_ALLOC, 0x2000);
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, SHF_ALLOC, kFatbinAddress);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper(linked ? 2 : 1, 0, 0), 0, 0, SHF_ALLOC,
              kWrapperAddress);
  elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, SHF_ALLOC, kPartAddress);
  elf.section(".data", SHT_PROGBITS, Buffer(24), 0, 0, SHF_ALLOC | SHF_WRITE, kListAddress);
  Buffer out = elf.build();
  put(out, offsetof(Elf64_Ehdr, e_type), std::uint16_t{ET_DYN});
  return out;
}

TEST_F(ObjectFilePlaces, AWrapperIsFollowedThroughItsRelocation) {
  const FileModule plain = open(shared_library(false)).module_at(kWrapperAddress);
  ASSERT_THAT(plain.images, SizeIs(1)) << plain.damage;
  EXPECT_THAT(plain.images[0].kernels, ElementsAre("_Z4mainv"));
}

TEST_F(ObjectFilePlaces, PartsAreOneImageThatNeedsTheNewestOfTheirVersions) {
  const ObjectFile file = open(shared_library(true));
  EXPECT_TRUE(file.has_relocatable_code());
  EXPECT_TRUE(file.is_shared_library());
  EXPECT_THAT(file.module_at(kFatbinAddress).images, SizeIs(1)) << "it has no parts";
  const FileModule module = file.module_at(kWrapperAddress);
  ASSERT_THAT(module.images, SizeIs(2)) << module.damage;
  EXPECT_EQ(module.images[1].candidate.isa, (image::Version{9, 0}));
  EXPECT_THAT(module.images[1].kernels, UnorderedElementsAre("_Z1av", "_Z1bv"));
}

TEST_F(ObjectFilePlaces, APeFileHasAddressesToo) {
  Buffer data(64, std::byte{0x5a});
  const std::uint64_t cubin_at = 0x3000 + data.size();
  append(data, Bytes(cubin(86, {"loose"})));
  const Buffer dll = build_pe({{".nv_fatb", 0x40000040, fatbin(80, "_Z3dllv").build(), 0x1000},
                               {".nvFatBi", 0x40000040, wrapper(1, 0x180001000, 0), 0x2000},
                               {".rdata", 0x40000040, data, 0x3000}});
  const ObjectFile file = open(dll, "");
  EXPECT_FALSE(file.is_bare());
  EXPECT_FALSE(file.is_shared_library()) << "of this system";
  for (const std::uint64_t address : {0x1000U, 0x2000U})
    EXPECT_THAT(file.module_at(address).images.at(0).kernels, ElementsAre("_Z3dllv")) << address;
  EXPECT_THAT(file.module_at(cubin_at).images.at(0).kernels, ElementsAre("loose"));
  EXPECT_THAT(refusal(text_of_buffer(dll), "abcd"), HasSubstr("is not an ELF file"));
}

TEST_F(ObjectFilePlaces, StaysRightWhenItIsMoved) {
  ObjectFile first = open(shared_library(true));
  EXPECT_THAT(first.module_at(kWrapperAddress).images, SizeIs(2));
  ObjectFile second = std::move(first);
  EXPECT_THAT(second.module_at(kWrapperAddress).images, SizeIs(2));
  first = open(cubin(80, {"other"}), "", "other.cubin");
  EXPECT_THAT(first.module_at(0).images.at(0).kernels, ElementsAre("other"));
  second = std::move(first);
  EXPECT_THAT(second.module_at(0).images.at(0).kernels, ElementsAre("other"));
}

TEST_F(ObjectFilePlaces, DamageIsSaidOfTheModuleThatHasIt) {
  Buffer fatbins;
  append_fatbin(fatbins, fatbin(70, "_Z4goodv"));
  const std::uint64_t broken = append_fatbin(fatbins, fatbin(80, "_Z6brokenv").ptx(arch_of(80), {9, 0}));
  const std::uint64_t unpacked =
      append_fatbin(fatbins, FatbinBuilder{}.add({.kind = ImageKind::cubin,
                                                  .arch = arch_of(90),
                                                  .payload = to_buffer("no zstd at all, this"),
                                                  .compression = image::Compression::zstd,
                                                  .uncompressed_size = 100}));
  put(fatbins, broken + 16, std::uint16_t{77});  // an entry of a kind that nobody knows
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, SHF_ALLOC, kFatbinAddress);
  const ObjectFile file = open(elf.build());
  ASSERT_THAT(file.code().modules, SizeIs(3));
  const std::uint64_t start = file.code().modules[0].offset;
  EXPECT_EQ(file.module_at(kFatbinAddress).damage, "");
  const FileModule partly = file.module_at(kFatbinAddress + broken);
  EXPECT_EQ(partly.damage,
            fmt::format("a fatbin holds an image of kind 0x4d, which this kshim does not know at offset {}",
                        start + broken + 16));
  EXPECT_THAT(partly.images, SizeIs(1)) << "the PTX behind it";
  EXPECT_EQ(file.module_at(kFatbinAddress + unpacked).damage,
            fmt::format("the sm_90 image has a payload that does not decompress at offset {}",
                        start + unpacked + 16));
}

TEST_F(ObjectFilePlaces, WhatIsReadInTheMiddleOfAFileHasItsPlaceInTheFile) {
  constexpr std::size_t kBefore = 16;
  Buffer loose = cubin(86, {"blur"});
  Buffer file(kBefore, std::byte{0x5a});
  append(file, Bytes(loose));
  const DeviceCode whole = read_device_code(file, kBefore);
  ASSERT_THAT(whole.modules, SizeIs(1));
  EXPECT_EQ(whole.modules[0].offset, kBefore);
  EXPECT_EQ(whole.images.at(0).offset, kBefore);
  EXPECT_THAT(read_device_code(file, 0).modules, IsEmpty());
  EXPECT_THAT(read_device_code(file, file.size()).modules, IsEmpty());
  loose.resize(100);
  file.resize(kBefore + loose.size());
  const DeviceCode cut = read_device_code(file, kBefore);
  EXPECT_THAT(cut.modules, IsEmpty());
  ASSERT_THAT(cut.damage, SizeIs(1));
  EXPECT_EQ(cut.damage[0].offset, kBefore + find_device_code(loose).damage.at(0).offset);
  ElfBuilder elf = host();
  elf.section(".rodata", SHT_PROGBITS, file, 0, 0, SHF_ALLOC, kDataAddress);
  const FileModule module = open(elf.build()).module_at(kDataAddress + kBefore);
  EXPECT_THAT(module.images, IsEmpty());
  EXPECT_THAT(module.damage, ::testing::AllOf(HasSubstr("the cubin "), HasSubstr("at offset ")));
}

TEST_F(ObjectFilePlaces, PayloadsAreReadAsFarAsTheBudgetGoes) {
  Buffer fatbins;
  const Buffer one = cubin(80, {"_Z1kv"});
  append_fatbin(fatbins, FatbinBuilder{}.cubin(arch_of(80), one).cubin(arch_of(90), cubin(90, {"_Z1kv"})));
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, SHF_ALLOC, kFatbinAddress);
  const ObjectFile file = open(elf.build());
  std::uint64_t budget = file.code().images[0].payload.size() + 7;
  const FileModule module = file.module(0, budget);
  EXPECT_TRUE(module.images[0].kernels_read);
  EXPECT_FALSE(module.images[1].kernels_read);
  EXPECT_EQ(budget, 7U);
}

TEST_F(ObjectFilePlaces, LtoIrHasNoLoadableImages) {
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, FatbinBuilder{}.ltoir(arch_of(90)).build(), 0, 0, SHF_ALLOC,
              kFatbinAddress);
  EXPECT_FALSE(open(elf.build()).module(0).has_kernels());
}

class GapsInFiles : public Analyze {
 protected:
  /// What a target of 6.1 lacks in a file that holds these fatbins among its constants.
  Analysis run_with(const Buffer& constants) {
    ElfBuilder elf = host("\xab\x12");
    elf.section(".rodata", SHT_PROGBITS, constants, 0, 0, SHF_ALLOC, kDataAddress);
    const Buffer bytes = elf.build();
    const auto path = folder_.write("libconstants.so", text_of_buffer(bytes));
    options_.targets = {arch_of(61)};
    ReportText report;
    report.process().driver("13.0").device(0, "9.0", "NVIDIA Test").object(1, path.string(), {}).end();
    return run(report);
  }
  TemporaryFolder folder_;
};

TEST_F(GapsInFiles, AreFoundAmongConstants) {
  Buffer constants;
  append_fatbin(constants, fatbin(90, "_Z6hiddenv"));
  append_fatbin(constants, FatbinBuilder{}.ltoir(arch_of(90)));
  const Analysis got = run_with(constants);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::latent_gap);
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("hidden()"));
  EXPECT_THAT(got.findings[0].have, ElementsAre("sm_90")) << "LTO-IR is no driver's";
}

TEST_F(GapsInFiles, CountTheModulesThatLackCodeWhereOthersHaveSome) {
  Buffer constants;
  append_fatbin(constants, fatbin(90, "_Z6hiddenv"));
  append_fatbin(constants, fatbin(61, "_Z6servedv"));
  const Analysis got = run_with(constants);
  ASSERT_THAT(got.findings, SizeIs(2)) << "one for the target, one for the GPU that is there";
  EXPECT_EQ(got.findings[0].need, "sm_61");
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("hidden()"));
  EXPECT_THAT(got.findings[0].headline, HasSubstr("1 of its 2 modules without code for"));
}

TEST_F(GapsInFiles, AreNoneWhereOnlyALinkerReads) {
  Buffer constants;
  append_fatbin(constants, FatbinBuilder{}.ltoir(arch_of(90)));
  EXPECT_THAT(run_with(constants).findings, IsEmpty());
}

}  // namespace
}  // namespace kshim::test

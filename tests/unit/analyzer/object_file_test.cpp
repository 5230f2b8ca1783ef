// SPDX-License-Identifier: Apache-2.0
// Files that a report names, read again: host programs with fatbins, bare images, and what a stranger made of
// them.
#include "analyzer/device_code/object_file.h"

#include <elf.h>
#include <gmock/gmock.h>

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

constexpr std::uint64_t kFatbins = 0x4000;   // link-time address of .nv_fatbin
constexpr std::uint64_t kWrappers = 0x8000;  // of .nvFatBinSegment
constexpr std::uint64_t kParts = 0xc000;     // of __nv_relfatbin
constexpr std::uint64_t kArrays = 0xf000;    // of the lists of parts
constexpr std::uint64_t kAllocated = SHF_ALLOC;

/// First fatbin without kernels, as nvcc makes for each program; second with `one` and `two`; sm_86
/// lacks `two`.
Buffer program() {
  Buffer fatbins =
      FatbinBuilder().cubin(arch_of(75), cubin(75, {})).cubin(arch_of(86), cubin(86, {})).build();
  pad_to(fatbins, 8);
  append(fatbins, Bytes(FatbinBuilder()
                            .cubin(arch_of(75), cubin(75, {"_Z3onev", "_Z3twov"}, "13.0"))
                            .cubin(arch_of(86), cubin(86, {"_Z3onev"}, "13.0"))
                            .ptx(arch_of(86), {9, 0}, ptx(86, "_Z3onev"))
                            .build()));
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, kAllocated, kFatbins);
  return elf.build();
}

/// Relocatable device code: the prelinked fatbin holds sm_90, the parts the PTX.
Buffer relocatable_program(bool list_in_bss) {
  const Buffer prelinked = FatbinBuilder().cubin(arch_of(90), cubin(90, {"_Z1av", "_Z1bv"})).build();
  Buffer parts = FatbinBuilder()
                     .cubin(arch_of(90), cubin(90, {"_Z1av"}))
                     .ptx(arch_of(90), {9, 0}, ptx(90, "_Z1av"))
                     .build();
  pad_to(parts, 8);
  const std::uint64_t second = kParts + parts.size();
  append(parts, Bytes(FatbinBuilder().ptx(arch_of(90), {9, 0}, ptx(90, "_Z1bv")).build()));
  Buffer wrapper;
  append(wrapper, image::kWrapperMagic);
  append(wrapper, 2U);
  append(wrapper, kFatbins);
  append(wrapper, kArrays);
  Buffer array;
  append(array, kParts);
  append(array, second);
  append(array, std::uint64_t{0});
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, prelinked, 0, 0, kAllocated, kFatbins);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper, 0, 0, kAllocated, kWrappers);
  elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, kAllocated, kParts);
  if (list_in_bss) {
    elf.section(".bss", SHT_NOBITS, {}, array.size(), 0, kAllocated, kArrays);
  } else {
    elf.section(".data", SHT_PROGBITS, array, 0, 0, kAllocated, kArrays);
  }
  return elf.build();
}

/// Address of the second module in program().
std::uint64_t second_of(const ObjectFile& file) {
  const auto& modules = file.code().modules;
  return kFatbins + modules.at(1).offset - modules.at(0).offset;
}

TEST_F(ObjectFileTest, FindsTheModuleWithKernels) {
  const ObjectFile file = open(program());
  ASSERT_THAT(file.code().modules, SizeIs(2));
  EXPECT_FALSE(file.module_at(kFatbins).has_kernels());
  const FileModule module = file.module_at(second_of(file));
  EXPECT_EQ(module.damage, "");
  ASSERT_THAT(module.images, SizeIs(3));
  EXPECT_THAT(module.images[0].kernels, UnorderedElementsAre("_Z3onev", "_Z3twov"));
  EXPECT_THAT(module.images[1].kernels, ElementsAre("_Z3onev"));
  EXPECT_THAT(module.images[2].kernels, ElementsAre("_Z3onev"));
  EXPECT_EQ(module.images[0].toolkit, (image::Version{13, 0}));
  EXPECT_EQ(file.only_module_with_kernels().images.size(), 3U);
  EXPECT_EQ(file.module_with_kernel("_Z3twov").images.size(), 3U);
  EXPECT_THAT(file.module_with_kernel("_Z5threev").images, IsEmpty());
  EXPECT_FALSE(file.is_bare());
}

TEST_F(ObjectFileTest, ListsWithoutPayloads) {
  const ObjectFile file = open(program());
  std::uint64_t budget = 0;
  const FileModule module = file.module(1, budget);
  ASSERT_THAT(module.images, SizeIs(3));
  EXPECT_FALSE(module.images[0].kernels_read);
  EXPECT_TRUE(module.has_kernels()) << "what was not read may have some";
  const auto counts = file.image_counts();
  ASSERT_THAT(counts, SizeIs(3));
  EXPECT_EQ(counts[0].count, 2U);
}

TEST_F(ObjectFileTest, TakesThePtxOfRelocatableParts) {
  for (const bool list_in_bss : {false, true}) {
    const ObjectFile file = open(relocatable_program(list_in_bss));
    for (const std::uint64_t address : {kFatbins, kWrappers}) {
      const FileModule module = file.module_at(address);
      ASSERT_THAT(module.images, SizeIs(2)) << "the parts' cubins are raw material; their PTX is one image";
      EXPECT_EQ(module.images[0].candidate.kind, ImageKind::cubin);
      EXPECT_EQ(module.images[1].candidate.kind, ImageKind::ptx);
      EXPECT_THAT(module.images[1].kernels, UnorderedElementsAre("_Z1av", "_Z1bv"));
    }
  }
}

TEST_F(ObjectFileTest, SaysWhatIsNotThere) {
  const ObjectFile file = open(program());
  EXPECT_THAT(file.module_at(0x999999).damage, HasSubstr("nothing at address 0x999999"));
  EXPECT_THAT(file.module_at(0x1000).damage, HasSubstr("neither a fatbin nor an image"));
}

TEST_F(ObjectFileTest, AWrapperThatPointsAtItselfOrAtAnotherLeadsNowhere) {
  Buffer wrappers;
  for (const std::uint64_t target : {kWrappers + 24, kWrappers, kWrappers + 48}) {
    append(wrappers, image::kWrapperMagic);
    append(wrappers, 1U);
    append(wrappers, target);
    append(wrappers, std::uint64_t{0});
  }
  ElfBuilder elf = host();
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrappers, 0, 0, kAllocated, kWrappers);
  const ObjectFile file = open(elf.build());
  for (const std::uint64_t address : {kWrappers, kWrappers + 24, kWrappers + 48}) {
    EXPECT_THAT(file.module_at(address).damage, HasSubstr("wrapper at offset")) << address;
  }
}

TEST_F(ObjectFileTest, SaysWhatIsDamaged) {
  Buffer fatbin = FatbinBuilder().cubin(arch_of(75), cubin(75, {"_Z1kv"})).build();
  fatbin.resize(fatbin.size() - 200);
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbin, 0, 0, kAllocated, kFatbins);
  EXPECT_THAT(open(elf.build()).module_at(kFatbins).damage, HasSubstr("a fatbin ends before"));
}

TEST_F(ObjectFileTest, OpensBareImages) {
  const ObjectFile fatbin = open(FatbinBuilder()
                                     .cubin(arch_of(90), cubin(90, {"blur"}))
                                     .ptx(arch_of(90), {9, 0}, ptx(90, "blur"))
                                     .build(),
                                 "", "k.fatbin");
  EXPECT_TRUE(fatbin.is_bare());
  EXPECT_THAT(fatbin.code().modules, SizeIs(1));
  EXPECT_THAT(fatbin.module_at(0).images, SizeIs(2));
  EXPECT_THAT(fatbin.image_counts(), SizeIs(2));
  EXPECT_FALSE(fatbin.is_shared_library());
  const ObjectFile loose = open(cubin(86, {"blur"}), "", "k.cubin");
  EXPECT_TRUE(loose.is_bare());
  EXPECT_THAT(loose.module_at(0).images.at(0).kernels, ElementsAre("blur"));
  const ObjectFile text = open(to_buffer(ptx(80, "blur")), "", "k.ptx");
  EXPECT_EQ(text.module_at(0).images.at(0).candidate.isa, (image::Version{9, 0}));
  EXPECT_THAT(text.module_at(0).images.at(0).kernels, ElementsAre("blur"));
}

TEST_F(ObjectFileTest, RefusesAFileThatIsNotTheOneInTheReport) {
  const Buffer bytes = program();
  EXPECT_THAT(refusal(text_of_buffer(bytes), "ffff"), HasSubstr("its build id is 61626364 now"));
  EXPECT_THAT(refusal(text_of_buffer(bytes), ""), HasSubstr("its build id differs"));
  EXPECT_THAT(refusal("#!/bin/sh\n", ""), HasSubstr("is not an ELF file"));
  EXPECT_THAT(refusal(text_of_buffer(cubin(86, {})), kBuildIdHex), HasSubstr("it is a bare image now"));
  EXPECT_EQ(std::get<std::string>(ObjectFile::open((folder_.path() / "none").string(), "")),
            "is no longer there");
  EXPECT_EQ(std::get<std::string>(ObjectFile::open(folder_.path().string(), "")),
            "is not a regular file with contents");
}

class FindImages : public ObjectFileTest {
 protected:
  Facts::Images ask(const Buffer& bytes, std::optional<std::uint64_t> offset, const std::string& kernel,
                    const GapRecord* gap = nullptr) {
    object_.id = 1;
    object_.line = 4;
    object_.path = folder_.write("program", text_of_buffer(bytes)).string();
    object_.build_id = kBuildIdHex;
    return find_images({&object_, offset, gap, kernel}, files_);
  }
  Facts facts_for(const Facts::Images& module, image::ComputeCapability cc) {
    Facts facts;
    facts.gpu.cc = cc;
    facts.images = module;
    return facts;
  }
  ObjectRecord object_;
  ObjectFiles files_;
};

TEST_F(FindImages, ReadsTheModuleByOffsetKernelOrBecauseItIsTheOnlyOne) {
  ObjectFile file = open(program());
  const std::uint64_t second = second_of(file);
  for (const auto& [offset, kernel] : std::vector<std::pair<std::optional<std::uint64_t>, std::string>>{
           {second, ""}, {std::nullopt, "_Z3twov"}, {std::nullopt, ""}}) {
    const Facts::Images module = ask(program(), offset, kernel);
    EXPECT_EQ(module.scope, ImageScope::module);
    EXPECT_THAT(module.list, SizeIs(3));
    EXPECT_TRUE(module.source->complete);
    EXPECT_EQ(module.toolkit, (image::Version{13, 0}));
  }
  EXPECT_EQ(ask(program(), second, "_Z3twov").list[1].has_kernel, false);
  EXPECT_EQ(ask(program(), second, "_Z3twov").list[0].has_kernel, true);
  EXPECT_FALSE(ask(program(), second, "").list[0].has_kernel.has_value());
}

// shows: a report whose files take more time to read than a user may ask for
TEST_F(FindImages, OfOneUsersReportsEndWithItsPatience) {
  const auto scope = [&](ObjectFiles& files, const ObjectRecord& object) {
    return find_images({&object, std::nullopt, nullptr, ""}, files).scope;
  };
  ask(program(), std::nullopt, "");
  ObjectRecord other = object_;
  other.path = folder_.write("other", text_of_buffer(program())).string();
  ObjectRecord last = object_;
  last.path = folder_.write("last", text_of_buffer(program())).string();
  Report first, second, third;
  first.owner = second.owner = 4711;
  third.owner = 4712;
  ObjectFiles files("/", std::chrono::nanoseconds(1));
  files.learn(first);
  EXPECT_EQ(scope(files, object_), ImageScope::module);
  EXPECT_EQ(files.left_out(), "");
  EXPECT_EQ(scope(files, object_), ImageScope::module) << "what was read stays read";
  EXPECT_EQ(files.left_out(), "");
  EXPECT_EQ(scope(files, other), ImageScope::none) << "opening the first has taken that long";
  EXPECT_NE(files.left_out(), "");
  files.learn(second);
  EXPECT_EQ(files.left_out(), "");
  EXPECT_EQ(files.find(other), nullptr) << "another report of the same user";
  EXPECT_NE(files.why_not(other), "");
  files.learn(third);
  EXPECT_NE(files.find(other), nullptr) << "a report of another user";
  files.learn(first);
  EXPECT_NE(files.find(other), nullptr) << "what was read stays read";
  EXPECT_EQ(files.find(last), nullptr) << "it goes on where it ended";
}

TEST_F(FindImages, NamesEveryKernelThatLacksAnImage) {
  const Facts::Images module = ask(program(), std::nullopt, "_Z3twov");
  EXPECT_THAT(lacking_kernels(facts_for(module, {6, 1}), "_Z3twov"), ElementsAre("_Z3twov", "_Z3onev"));
  EXPECT_THAT(lacking_kernels(facts_for(module, {8, 6}), "_Z3twov"), ElementsAre("_Z3twov"));
  EXPECT_THAT(lacking_kernels(facts_for(module, {8, 6}), ""), ElementsAre("_Z3twov"));
  EXPECT_THAT(lacking_kernels(facts_for(module, {7, 5}), ""), IsEmpty());
}

TEST_F(FindImages, FallsBackToWhatTheReportHolds) {
  object_.id = 1;
  object_.path = (folder_.path() / "gone.so").string();
  GapRecord gap;
  gap.have = {"sm_75", "compute_75", "nonsense"};
  gap.line = 9;
  const Facts::Images by_gap = find_images({&object_, 64, &gap, "_Z1kv"}, files_);
  EXPECT_EQ(by_gap.scope, ImageScope::module);
  EXPECT_THAT(by_gap.list, SizeIs(2));
  EXPECT_EQ(by_gap.source->line, 9U);
  object_.images = {{"cubin", "sm_80", "", 3, 0}, {"ptx", "compute_80", "8.0", 3, 0}};
  object_.fatbins = 3;
  const Facts::Images by_list = find_images({&object_, 64, nullptr, "_Z1kv"}, files_);
  EXPECT_EQ(by_list.scope, ImageScope::file) << "three fatbins: the failing one may have fewer images";
  object_.fatbins = 1;
  EXPECT_EQ(find_images({&object_, 64, nullptr, ""}, files_).scope, ImageScope::module);
  object_.images.reset();
  EXPECT_EQ(find_images({&object_, 64, nullptr, ""}, files_).scope, ImageScope::none);
}

}  // namespace
}  // namespace kshim::test

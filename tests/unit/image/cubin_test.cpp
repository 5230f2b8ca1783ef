// SPDX-License-Identifier: Apache-2.0
// Cubins composed as ptxas writes them. The real ones are compared in tests/unit/image/toolkit_test.py.
#include "kshim/image/cubin.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cubin_builder.h"
#include "fatbin_builder.h"

namespace kshim::image {
namespace {

using test::arch_of;
using test::Buffer;
using test::build_cubin;
using test::CubinSpec;
using test::ElfBuilder;
using test::put;
using test::to_buffer;

CubinReader open_whole(const Buffer& bytes) {
  const auto cubin = CubinReader::open(bytes);
  EXPECT_TRUE(cubin.ok());
  return cubin.value_or({});
}

CubinSpec sample(unsigned number = 90, std::uint8_t abi_version = 8) {
  CubinSpec spec{.arch = arch_of(number), .abi_version = abi_version};
  spec.kernels = {{.name = "_Z5firstPid",
                   .registers = 40,
                   .shared_bytes = 1024 + 256,
                   .frame_bytes = 48,
                   .max_threads = 256,
                   .parameters = {{0, 8}, {8, 16}}},
                  {.name = "second"}};
  spec.globals = {{.name = "counter", .size = 12},
                  {.name = "table", .size = 4, .constant = true, .initial = to_buffer("abcd")},
                  {.name = "start", .size = 3, .initial = to_buffer("xyz")},
                  {.name = "both", .size = 8, .managed = true}};
  spec.device_function = "helper";
  return spec;
}

class EachAbi : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Cubin, EachAbi, testing::Values(7, 8),
                         [](const auto& each) { return "version" + std::to_string(each.param); });

TEST_P(EachAbi, TellsItsArchitecture) {
  for (const unsigned number : {52U, 70U, 75U, 80U, 90U, 100U, 103U, 120U, 121U}) {
    const Buffer bytes = build_cubin(sample(number, static_cast<std::uint8_t>(GetParam())));
    EXPECT_EQ(open_whole(bytes).arch(), arch_of(number));
  }
}

TEST_P(EachAbi, ListsItsKernelsAndNothingElse) {
  const Buffer bytes = build_cubin(sample(90, static_cast<std::uint8_t>(GetParam())));
  const CubinReader cubin = open_whole(bytes);
  std::vector<std::string> names;
  const auto count = cubin.each_kernel([&](const KernelInfo& kernel) {
    names.emplace_back(kernel.name);
    return true;
  });
  EXPECT_EQ(*count, 2U);
  EXPECT_EQ(names, (std::vector<std::string>{"_Z5firstPid", "second"}));  // not "helper"
  std::uint64_t cursor = 0;
  EXPECT_EQ(cubin.next_name(cursor)->name, "_Z5firstPid");
  EXPECT_EQ(cubin.next_name(cursor)->code_bytes, 128U);
  EXPECT_EQ(cubin.next_name(cursor).error().code, Errc::not_found);
}

TEST(Cubin, ReadsWhatAKernelNeeds) {
  const Buffer bytes = build_cubin(sample());
  const auto kernel = open_whole(bytes).find_kernel("_Z5firstPid");
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->registers, 40U);
  EXPECT_EQ(kernel->shared_bytes, 256U);  // 1 KiB in front is the driver's from 9.0 on
  EXPECT_EQ(kernel->local_bytes, 48U);
  EXPECT_EQ(kernel->constant_bytes, 4U);
  EXPECT_EQ(kernel->max_threads, 256U);
  EXPECT_EQ(kernel->parameter_bytes, 24U);
  EXPECT_EQ(kernel->parameter_count, 2U);
  EXPECT_EQ(kernel->code_bytes, 128U);
}

TEST(Cubin, CountsAllOfSharedMemoryBefore90) {
  const Buffer bytes = build_cubin(sample(80));
  EXPECT_EQ(open_whole(bytes).find_kernel("_Z5firstPid")->shared_bytes, 1280U);
}

// libcutensorMp 2.8.1 has the same kernel linked and not: 1536 bytes and 512.
TEST(Cubin, OneThatIsNotLinkedHasNothingInFront) {
  Buffer bytes = build_cubin(sample());
  constexpr std::size_t kType = 16;
  bytes[kType] = std::byte{1};  // ET_REL
  EXPECT_EQ(open_whole(bytes).find_kernel("_Z5firstPid")->shared_bytes, 1280U);
}

std::vector<KernelSlot> described(const CubinReader& cubin) {
  std::vector<KernelSlot> out;
  for (std::uint64_t cursor = 0;;) {
    const auto name = cubin.next_name(cursor);
    if (!name) break;
    out.push_back({{}, name->symbol, name->section});
    out.back().info.name = name->name;
  }
  EXPECT_EQ(*cubin.describe(out), out.size());
  return out;
}

TEST(Cubin, DescribesAllKernelsAtOnceAsItDoesEach) {
  CubinSpec spec = sample(80);
  spec.kernels.push_back({.name = "my_second", .registers = 77, .shared_bytes = 64, .max_threads = 1024});
  spec.kernels.push_back({.name = "d", .registers = 11});
  const Buffer bytes = build_cubin(spec);
  const CubinReader cubin = open_whole(bytes);
  const auto all = described(cubin);
  ASSERT_EQ(all.size(), 4U);
  for (const KernelSlot& slot : all) {
    const auto alone = cubin.find_kernel(slot.info.name);
    ASSERT_TRUE(alone.ok());
    EXPECT_EQ(slot.info.registers, alone->registers) << slot.info.name;
    EXPECT_EQ(slot.info.shared_bytes, alone->shared_bytes) << slot.info.name;
    EXPECT_EQ(slot.info.local_bytes, alone->local_bytes) << slot.info.name;
    EXPECT_EQ(slot.info.max_threads, alone->max_threads) << slot.info.name;
    EXPECT_EQ(slot.info.parameter_bytes, alone->parameter_bytes) << slot.info.name;
  }
  EXPECT_EQ(all[2].info.name, "my_second");
  EXPECT_EQ(all[2].info.registers, 77U);
  EXPECT_EQ(all[2].info.shared_bytes, 64U);
  EXPECT_EQ(all[3].info.registers, 11U);
  EXPECT_EQ(all[3].info.shared_bytes, 0U);
}

TEST(Cubin, ReadsTheRegistersOfCuda8FromTheTextSection) {
  test::ElfBuilder elf;
  elf.flags = 0x500U | 61U << 16 | 61U;
  elf.abi_version = 7;
  const auto text = elf.section(".text.k", 1, Buffer(128), 0, 0x20000001);
  elf.symbol("k", 0x12, 0x10, text, 0, 128);
  const Buffer bytes = elf.build();
  EXPECT_EQ(open_whole(bytes).find_kernel("k")->registers, 32U);
}

TEST(Cubin, ASectionThatBelongsToNoKernelDescribesNone) {
  test::ElfBuilder elf;
  elf.flags = 0x06005000U | 0x2U;
  const auto text = elf.section(".text.k", 1, Buffer(128));
  elf.symbol("k", 0x12, 0x10, text, 0, 128);
  elf.section(".nv.shared.other", test::ElfBuilder::kNoBits, {}, 512, text);
  elf.section(".nv.shared.k", test::ElfBuilder::kNoBits, {}, 256, 0xffffffff);
  const Buffer bytes = elf.build();
  EXPECT_EQ(open_whole(bytes).find_kernel("k")->shared_bytes, 0U);
}

TEST(Cubin, AKernelWithoutAttributesHasDefaults) {
  const Buffer bytes = build_cubin(sample());
  const auto kernel = open_whole(bytes).find_kernel("second");
  ASSERT_TRUE(kernel.ok());
  EXPECT_EQ(kernel->shared_bytes, 0U);
  EXPECT_EQ(kernel->max_threads, KernelInfo::kUnknown);
  EXPECT_EQ(kernel->parameter_count, 0U);
  EXPECT_EQ(kernel->parameter_bytes, 0U);
}

TEST(Cubin, FindsNoKernelThatIsNotThere) {
  const Buffer bytes = build_cubin(sample());
  const CubinReader cubin = open_whole(bytes);
  for (const char* name : {"", "helper", "counter", "_Z5first", "_Z5firstPid2"})
    EXPECT_EQ(cubin.find_kernel(name).error().code, Errc::not_found) << name;
}

TEST(Cubin, ReadsParametersOfBothRecordVersions) {
  for (const bool wide : {false, true}) {
    CubinSpec spec{.arch = arch_of(90)};
    const std::uint16_t large = wide ? 32764 : 4096;
    spec.kernels = {{.name = "k", .parameters = {{0, 4}, {8, large}}, .wide_parameters = wide}};
    const Buffer bytes = build_cubin(spec);
    const CubinReader cubin = open_whole(bytes);
    EXPECT_EQ(cubin.parameter("k", 0)->offset, 0U);
    EXPECT_EQ(cubin.parameter("k", 0)->size, 4U);
    EXPECT_EQ(cubin.parameter("k", 1)->offset, 8U);
    EXPECT_EQ(cubin.parameter("k", 1)->size, large);
    EXPECT_EQ(cubin.parameter("k", 2).error().code, Errc::not_found);
    EXPECT_EQ(cubin.parameter("other", 0).error().code, Errc::not_found);
  }
}

TEST(Cubin, ListsItsVariables) {
  const Buffer bytes = build_cubin(sample());
  std::vector<GlobalInfo> globals;
  const auto count = open_whole(bytes).each_global([&](const GlobalInfo& global) {
    globals.push_back(global);
    return true;
  });
  ASSERT_EQ(*count, 4U);
  EXPECT_EQ(globals[0].name, "counter");
  EXPECT_EQ(globals[0].size, 12U);
  EXPECT_TRUE(globals[0].initial.empty());
  EXPECT_EQ(globals[1].name, "table");
  EXPECT_TRUE(globals[1].constant);
  EXPECT_EQ(text_of(globals[1].initial), "abcd");
  EXPECT_EQ(text_of(globals[2].initial), "xyz");
  EXPECT_FALSE(globals[2].constant);
  EXPECT_TRUE(globals[3].managed);
  EXPECT_FALSE(globals[0].managed);
}

TEST(Cubin, StopsWhenTheVisitorHasEnough) {
  const Buffer bytes = build_cubin(sample());
  EXPECT_EQ(*open_whole(bytes).each_kernel([](const KernelInfo&) { return false; }), 1U);
  EXPECT_EQ(*open_whole(bytes).each_global([](const GlobalInfo&) { return false; }), 1U);
}

struct SuffixCase {
  unsigned number;
  const char* command_line;
  bool record;
  Suffix suffix;
};

TEST(CubinSuffix, ComesFromTheNoteOrTheRecord) {
  for (const SuffixCase& each :
       {SuffixCase{90, "", false, Suffix::none}, SuffixCase{90, "-arch sm_90 -m 64", false, Suffix::none},
        SuffixCase{90, "-arch sm_90a -m 64", false, Suffix::a}, SuffixCase{90, "", true, Suffix::a},
        SuffixCase{100, "-arch sm_100f -m 64", false, Suffix::f},
        SuffixCase{100, "-arch sm_100a -m 64", true, Suffix::a},
        SuffixCase{120, "-arch=sm_120f", false, Suffix::f},
        // Another architecture's name, and names that only begin alike.
        SuffixCase{90, "-arch sm_100a", false, Suffix::none},
        SuffixCase{90, "-arch sm_90 -o sm_90add.cubin", false, Suffix::none},
        SuffixCase{90, "-o sm_90fast -arch sm_90a", false, Suffix::a}}) {
    CubinSpec spec{.arch = arch_of(each.number)};
    spec.command_line = each.command_line;
    spec.arch_specific_record = each.record;
    const Buffer bytes = build_cubin(spec);
    EXPECT_EQ(open_whole(bytes).arch(), arch_of(each.number, each.suffix))
        << each.command_line << each.record;
  }
}

TEST_P(EachAbi, ReadsTheArchitectureSpecificBit) {
  CubinSpec spec{
      .arch = arch_of(90), .abi_version = static_cast<std::uint8_t>(GetParam()), .arch_specific_flag = true};
  const Buffer bytes = build_cubin(spec);
  EXPECT_EQ(open_whole(bytes).arch(), arch_of(90, Suffix::a));
}

// e_flags of real cubins: ptxas 12.4.131 and 12.9.86 (2026-11-21).
TEST(CubinSuffix, ReadsTheFlagsOfRealCubins) {
  struct Line {
    std::uint8_t abi_version;
    std::uint32_t flags;
    Arch arch;
  };
  for (const Line& each :
       {Line{7, 0x320532, arch_of(50)}, Line{7, 0x460546, arch_of(70)}, Line{7, 0x50055a, arch_of(90)},
        Line{7, 0x5a055a, arch_of(90)}, Line{7, 0x5a0d5a, arch_of(90, Suffix::a)},
        Line{8, 0x6006402, arch_of(100)}, Line{8, 0x600640a, arch_of(100, Suffix::a)},
        Line{8, 0x600650a, arch_of(101, Suffix::a)}, Line{8, 0x600780a, arch_of(120, Suffix::a)},
        Line{8, 0x6004b04, arch_of(75)}, Line{8, 0x5004b04, arch_of(75)}}) {
    ElfBuilder elf;
    elf.abi_version = each.abi_version;
    elf.flags = each.flags;
    const Buffer bytes = elf.build();
    EXPECT_EQ(open_whole(bytes).arch(), each.arch) << std::hex << each.flags;
  }
}

// Damage. What ELF alone can get wrong is in elf_test.cpp.

TEST(CubinDamage, NoElf) { EXPECT_EQ(CubinReader::open(to_buffer("cubin")).error().code, Errc::bad_magic); }

TEST(CubinDamage, AHostFileIsNoCubin) {
  Buffer bytes = build_cubin(sample());
  put(bytes, 18, std::uint16_t{62});
  EXPECT_EQ(CubinReader::open(bytes).error().code, Errc::bad_magic);
}

TEST(CubinDamage, AnArchitectureBelowTen) {
  Buffer bytes = build_cubin(sample());
  put(bytes, 48, std::uint32_t{0x6000904});
  EXPECT_EQ(CubinReader::open(bytes).error().code, Errc::bad_header);
  put(bytes, 48, std::uint32_t{0});
  EXPECT_EQ(CubinReader::open(bytes).error().code, Errc::bad_header);
}

TEST(CubinDamage, WithoutSymbolsHasNoKernels) {
  CubinSpec spec{.arch = arch_of(90)};
  const Buffer bytes = build_cubin(spec);
  EXPECT_EQ(*open_whole(bytes).each_kernel([](const KernelInfo&) { return true; }), 0U);
}

TEST(CubinDamage, ASectionBeyondTheEndIsNoted) {
  Buffer bytes = build_cubin(sample());
  const auto table = static_cast<std::size_t>(*read_le<std::uint64_t>(bytes, 40));
  put(bytes, table + 64 + 24, UINT64_MAX);
  EXPECT_EQ(CubinReader::open(bytes).error().code, Errc::truncated);
}

TEST(CubinDamage, AVariableOutsideOfItsSectionIsNoted) {
  CubinSpec spec{.arch = arch_of(90)};
  spec.globals = {{.name = "start", .size = 4, .initial = to_buffer("xyz")}};
  const Buffer bytes = build_cubin(spec);
  const auto result = open_whole(bytes).each_global([](const GlobalInfo&) { return true; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Errc::truncated);
}

TEST(CubinDamage, AVariableInASectionThatIsNotThereIsNoted) {
  ElfBuilder elf;
  elf.flags = 90U << 8;
  elf.symbol("lost", 0x01, 0, 999, 0, 4);
  const Buffer bytes = elf.build();
  EXPECT_FALSE(open_whole(bytes).each_global([](const GlobalInfo&) { return true; }).ok());
}

struct InfoCase {
  const char* what;
  std::string_view bytes;
};

// .nv.info is a chain of records; a broken link ends it, and what was read before stands.
TEST(CubinDamage, BrokenAttributeRecordsEndTheirChain) {
  using namespace std::string_view_literals;
  for (const InfoCase& each : {InfoCase{"empty", ""sv}, InfoCase{"cut off", "\4\x2f"sv},
                               InfoCase{"format 0", "\0\x2f\x8\0\0\0\0\0\0\0\0\0"sv},
                               InfoCase{"format 5", "\5\x2f\x8\0\0\0\0\0\0\0\0\0"sv},
                               InfoCase{"longer than its section", "\4\x2f\xff\xff\0\0\0\0"sv},
                               InfoCase{"no room for a subject", "\4\x2f\0\0"sv},
                               InfoCase{"no room for a value", "\4\x2f\4\0\1\0\0\0"sv}}) {
    ElfBuilder elf;
    elf.flags = 90U << 8;
    const auto text = elf.section(".text.k", 1, Buffer(16));
    elf.symbol("k", 0x12, 0x10, text, 0, 16);
    elf.section(".nv.info", 0x70000000, to_buffer(each.bytes));
    elf.section(".nv.info.k", 0x70000000, to_buffer(each.bytes));
    const Buffer bytes = elf.build();
    const CubinReader cubin = open_whole(bytes);
    const auto kernel = cubin.find_kernel("k");
    ASSERT_TRUE(kernel.ok()) << each.what;
    EXPECT_EQ(kernel->registers, KernelInfo::kUnknown) << each.what;
    EXPECT_EQ(cubin.parameter("k", 0).error().code, Errc::not_found) << each.what;
  }
}

TEST(CubinDamage, AParameterRecordTooShortForItsFieldsIsNoted) {
  using namespace std::string_view_literals;
  ElfBuilder elf;
  elf.flags = 90U << 8;
  elf.symbol("k", 0x12, 0x10, elf.section(".text.k", 1, Buffer(16)), 0, 16);
  elf.section(".nv.info.k", 0x70000000, to_buffer("\4\x17\x8\0\0\0\0\0\0\0\0\0"sv));
  const Buffer bytes = elf.build();
  EXPECT_EQ(open_whole(bytes).parameter("k", 0).error().code, Errc::truncated);
}

TEST(CubinDamage, LaunchBoundsThatOverflowAreUnknown) {
  for (const auto& bounds : {std::initializer_list<std::uint32_t>{0xffffffff, 0xffffffff, 2},
                             {65536, 65536, 1},
                             {0, 1, 1},
                             {1, 1}}) {
    ElfBuilder elf;
    elf.flags = 90U << 8;
    elf.symbol("k", 0x12, 0x10, elf.section(".text.k", 1, Buffer(16)), 0, 16);
    Buffer info;
    test::append_info(info, 0x05, bounds);
    elf.section(".nv.info.k", 0x70000000, info);
    const Buffer bytes = elf.build();
    EXPECT_EQ(open_whole(bytes).find_kernel("k")->max_threads, KernelInfo::kUnknown);
  }
}

}  // namespace
}  // namespace kshim::image

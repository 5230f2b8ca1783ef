// SPDX-License-Identifier: Apache-2.0
// What the library answers about sound files.
#include "packed_payload.h"
#include "query_fixture.h"

namespace kshim::test {
namespace {

using image::Compression;
using image::Suffix;

class QueryAnswers : public Query {};

TEST_F(QueryAnswers, MachineCodeThenPtxThenNothing) {
  const std::string file =
      write("f.so", Bytes(host_of({FatbinBuilder{}
                                       .cubin(arch_of(80), cubin_of(80, {"scale"}))
                                       .ptx(arch_of(90), {8, 0}, ptx_of(90, {"scale"}))})));
  for (const char* kernel : {static_cast<const char*>(nullptr), "scale"}) {
    Asked asked = ask(file, 86, kernel);
    EXPECT_EQ(asked.code, KSHIM_CODE_SASS);
    EXPECT_EQ(asked.reason, "same_major");
    EXPECT_STREQ(asked.answer.image, "sm_80");
    EXPECT_EQ(asked.answer.modules, 1U);
    EXPECT_EQ(asked.answer.sass, 1U);
    asked = ask(file, 120, kernel);
    EXPECT_EQ(asked.code, KSHIM_CODE_JIT);
    EXPECT_STREQ(asked.answer.image, "compute_90");
    EXPECT_EQ(asked.answer.jit, 1U);
    asked = ask(file, 75, kernel);
    EXPECT_EQ(asked.code, KSHIM_CODE_NONE);
    EXPECT_EQ(asked.reason, "nothing_fits");
    EXPECT_STREQ(asked.answer.image, "");
    EXPECT_STREQ(asked.answer.have, "sm_80 compute_90");
    EXPECT_EQ(asked.answer.lacking, 1U);
  }
}

TEST_F(QueryAnswers, ArchSpecificCodeIsExact) {
  const std::string file =
      write("f.fatbin", FatbinBuilder{}.cubin(arch_of(90, Suffix::a), cubin_of(90, {"attention"})));
  EXPECT_EQ(ask(file, 90).code, KSHIM_CODE_SASS);
  EXPECT_STREQ(ask(file, 90).answer.image, "sm_90a");
  EXPECT_EQ(ask(file, 100).code, KSHIM_CODE_NONE);
}

TEST_F(QueryAnswers, AModuleWithoutKernelsCountsForNothing) {
  const std::string file =
      write("f.so", Bytes(host_of({FatbinBuilder{}.cubin(arch_of(75), cubin_of(75, {})),
                                   FatbinBuilder{}.cubin(arch_of(90), cubin_of(90, {"scale"}))})));
  const Asked asked = ask(file, 75);
  EXPECT_EQ(asked.code, KSHIM_CODE_NONE);
  EXPECT_EQ(asked.answer.modules, 1U);
  EXPECT_STREQ(asked.answer.have, "sm_90");
  EXPECT_EQ(ask(file, 90).code, KSHIM_CODE_SASS);
  const std::string empty =
      write("e.so", Bytes(host_of({FatbinBuilder{}.cubin(arch_of(75), cubin_of(75, {}))})));
  EXPECT_EQ(ask(empty, 75).code, KSHIM_CODE_NONE);
  EXPECT_EQ(ask(empty, 75).reason, "no_kernels");
}

TEST_F(QueryAnswers, KernelByKernel) {
  // The driver takes sm_86, which lacks `other`; another module has a kernel of the same name for nobody but
  // sm_70.
  const std::string file =
      write("f.so", Bytes(host_of({FatbinBuilder{}
                                       .cubin(arch_of(80), cubin_of(80, {"scale", "other"}))
                                       .cubin(arch_of(86), cubin_of(86, {"scale"})),
                                   FatbinBuilder{}.cubin(arch_of(70), cubin_of(70, {"scale"}))})));
  settle();  // so that each question meets what the ones before it left
  EXPECT_EQ(ask(file, 86, "scale").code, KSHIM_CODE_SASS);
  EXPECT_STREQ(ask(file, 86, "scale").answer.image, "sm_86");
  const Asked asked = ask(file, 86, "other");
  EXPECT_EQ(asked.code, KSHIM_CODE_NONE);
  EXPECT_EQ(asked.reason, "kernel_missing_from_image");
  EXPECT_EQ(asked.answer.lacking, 1U);
  EXPECT_EQ(ask(file, 80, "other").code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(file, 86, "absent").reason, "kernel_not_found");
  EXPECT_EQ(ask(file, 86, "absent").code, KSHIM_CODE_NONE);
  EXPECT_EQ(ask(file, 90, "scale").answer.lacking, 2U);
  EXPECT_EQ(ask(file, 90, "scale").reason, "nothing_fits");
  EXPECT_EQ(ask(file, 70, "scale").answer.modules, 1U);
  // Asked for again, with all images listed by now.
  EXPECT_EQ(ask(file, 86, "scale").code, KSHIM_CODE_SASS);
}

TEST_F(QueryAnswers, TheDriverDecidesToo) {
  const Buffer plain = cubin_of(90, {"scale"});
  FatbinBuilder fatbin;
  fatbin.add({.arch = arch_of(90),
              .payload = pack(Compression::zstd, plain),
              .compression = Compression::zstd,
              .uncompressed_size = plain.size()});
  fatbin.ptx(arch_of(80), {8, 0}, ptx_of(80, {"scale"}));
  const std::string file = write("f.fatbin", fatbin);
  EXPECT_EQ(ask(file, 90, "scale", 12040).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(file, 90, "scale", 12030).code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(file, 90, nullptr, 12030).code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(file, 86, nullptr, 11080).reason, "ptx_isa_gate");
  EXPECT_EQ(ask(file, 120, nullptr, 12080).code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(file, 120, nullptr, 12040).code, KSHIM_CODE_NONE);
  EXPECT_EQ(ask(file, 120, nullptr, 12040).reason, "driver_too_old");
}

TEST_F(QueryAnswers, TheSwitchesDecideToo) {
  const std::string file = write("f.fatbin", FatbinBuilder{}
                                                 .cubin(arch_of(80), cubin_of(80, {"scale"}))
                                                 .ptx(arch_of(80), {8, 0}, ptx_of(80, {"scale"})));
  EXPECT_EQ(ask(file, 80).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(file, 80, "scale", 0, KSHIM_FORCE_PTX_JIT).code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(file, 80, "scale", 0, KSHIM_FORCE_JIT).code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(file, 90, "scale", 0, KSHIM_DISABLE_PTX_JIT).reason, "disable_ptx_jit");
  EXPECT_EQ(ask(file, 90, "scale", 0, KSHIM_DISABLE_JIT).reason, "disable_jit");
  EXPECT_EQ(ask(file, 90, "scale").code, KSHIM_CODE_JIT);
}

TEST_F(QueryAnswers, EveryCompression) {
  const Buffer plain = cubin_of(80, {"scale"});
  for (const Compression compression : {Compression::none, Compression::lz4, Compression::zstd}) {
    FatbinBuilder fatbin;
    fatbin.add({.arch = arch_of(80),
                .payload = pack(compression, plain),
                .compression = compression,
                .uncompressed_size = plain.size()});
    const std::string file = write("f.fatbin", fatbin);
    EXPECT_EQ(ask(file, 80, "scale").code, KSHIM_CODE_SASS);
    EXPECT_EQ(ask(file, 80, "other").code, KSHIM_CODE_NONE);
  }
  FatbinBuilder younger;
  younger.add({.arch = arch_of(80), .payload = plain, .uncompressed_size = 0, .extra_flags = 0x10000});
  const std::string file = write("y.fatbin", younger);
  EXPECT_EQ(ask(file, 80).code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(file, 80, "scale").reason, "unknown_compression");
  EXPECT_EQ(ask(file, 90).code, KSHIM_CODE_NONE);
}

TEST_F(QueryAnswers, AnImageOfAnUnknownKindLeavesNoUnknown) {
  Buffer bytes = FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"})).cubin(arch_of(90)).build();
  // The second entry: behind the first one's header and payload.
  const auto first = read_le<std::uint64_t>(bytes, kFatbinHeader + kEntryPayloadSize);
  put(bytes, kFatbinHeader + 64 + *first + kEntryKind, std::uint16_t{77});
  const std::string file = write("f.fatbin", Bytes(bytes));
  EXPECT_EQ(ask(file, 80, "scale").code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(file, 90, "scale").reason, "unknown_image_kind");
  EXPECT_EQ(ask(file, 90).reason, "unknown_image_kind");
}

TEST_F(QueryAnswers, LooseImages) {
  const std::string cubin = write("f.cubin", Bytes(cubin_of(80, {"scale"})));
  EXPECT_EQ(ask(cubin, 86, "scale").code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(cubin, 75).code, KSHIM_CODE_NONE);
  const std::string ptx = write("f.ptx", bytes_of(ptx_of(80, {"scale"})));
  EXPECT_EQ(ask(ptx, 86, "scale").code, KSHIM_CODE_JIT);
  EXPECT_EQ(ask(ptx, 75).reason, "loose_ptx_misfit");
  const std::string ltoir = write("f.fatbin", FatbinBuilder{}.ltoir(arch_of(80)));
  EXPECT_EQ(ask(ltoir, 80).code, KSHIM_CODE_NONE);
  EXPECT_EQ(ask(ltoir, 80).reason, "ltoir_not_executable");
}

TEST_F(QueryAnswers, FatbinsAmongOtherData) {
  ElfBuilder elf = host_elf();
  Buffer data(300'000 + 8 * 5);  // not in the first window, and not at its end
  append(data, Bytes(FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"})).build()));
  data.resize(data.size() + 300'000);
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, kLoaded, 0x1000);
  const std::string file = write("f.so", Bytes(elf.build()));
  EXPECT_EQ(ask(file, 80, "scale").code, KSHIM_CODE_SASS);
}

// ONNX Runtime has 114 to 189 of them: at any offset, across the borders of what is read at once.
TEST_F(QueryAnswers, CubinsAmongOtherData) {
  constexpr std::size_t kWindow = 256 << 10;
  const Buffer cubin = cubin_of(80, {"scale"});
  for (const std::size_t at :
       {std::size_t{1}, std::size_t{4099}, kWindow - 19, kWindow - 8, kWindow - 1, kWindow}) {
    ElfBuilder elf = host_elf();
    Buffer data(at);
    append(data, Bytes(cubin));
    data.resize(data.size() + 300'001);
    append(data, Bytes(cubin_of(90, {"fast"})));
    elf.section(".rodata", SHT_PROGBITS, data, 0, 0, kLoaded, 0x1000);
    const std::string file = write("f" + std::to_string(at), Bytes(elf.build()));
    EXPECT_EQ(ask(file, 80, "scale").code, KSHIM_CODE_SASS) << at;
    EXPECT_EQ(ask(file, 90, "fast").code, KSHIM_CODE_SASS) << at;
    const Asked all = ask(file, 80);
    EXPECT_EQ(all.answer.modules, 2U) << at;
    EXPECT_EQ(all.answer.lacking, 1U) << at;
  }
}

// The host's own header begins like a cubin's, and so may data that is none.
TEST_F(QueryAnswers, WhatOnlyBeginsLikeACubin) {
  ElfBuilder elf = host_elf();
  Buffer data(100);
  append(data, Bytes(cubin_of(80, {"scale"})).first(40));
  data.resize(data.size() + 1000);
  elf.section(".rodata", SHT_PROGBITS, data, 0, 0, kLoaded, 0x1000);
  EXPECT_EQ(ask(write("f.so", Bytes(elf.build())), 80).reason, "no_device_code");
}

// libcudf: PTX for the newest GPU and LTO-IR for each, which it links by nvJitLink.
TEST_F(QueryAnswers, LtoIrBesidePtxLacksNothing) {
  const std::string file =
      write("f.so", Bytes(host_of({FatbinBuilder{}.cubin(arch_of(75), cubin_of(75, {"scale"})),
                                   FatbinBuilder{}
                                       .ltoir(arch_of(75))
                                       .ltoir(arch_of(90))
                                       .ptx(arch_of(120), {8, 7}, ptx_of(120, {"filter"}, "8.7"))})));
  const Asked turing = ask(file, 75);
  EXPECT_EQ(turing.code, KSHIM_CODE_SASS);
  EXPECT_EQ(turing.answer.modules, 1U);
  EXPECT_EQ(turing.answer.lacking, 0U);
  EXPECT_EQ(ask(file, 70).answer.lacking, 2U) << "LTO-IR for a newer GPU";
  EXPECT_EQ(ask(file, 75, "filter").code, KSHIM_CODE_NONE) << "no driver loads it";
  EXPECT_EQ(ask(file, 120, "filter").code, KSHIM_CODE_JIT);
}

TEST_F(QueryAnswers, FilesWithoutDeviceCode) {
  EXPECT_EQ(ask(write("f.so", Bytes(host_of({}))), 80).reason, "no_device_code");
  EXPECT_EQ(ask("/proc/self/exe", 80).reason, "no_device_code");
  EXPECT_EQ(ask("/proc/self/exe", 80, "scale").code, KSHIM_CODE_NONE);
  EXPECT_EQ(ask(write("f.txt", bytes_of("not code")), 80).reason, "unknown_format");
  EXPECT_EQ(ask(write("f.a", bytes_of("!<arch>\n")), 80).reason, "archive");
  Buffer object = host_of({FatbinBuilder{}.cubin(arch_of(80), cubin_of(80, {"scale"}))});
  put(object, 16, std::uint16_t{ET_REL});
  EXPECT_EQ(ask(write("f.o", Bytes(object)), 80).reason, "not_linked");
}

/// Module sm_90 with a wrapper of version 2, and parts for compute_70 (`a`) and compute_80 (`b`) in
/// relocatable code.
Buffer linked_program(std::initializer_list<int> listed) {
  constexpr std::uint64_t kFatbin = 0x4000, kWrapper = 0x8000, kParts = 0xc000, kList = 0xf000;
  ElfBuilder elf = host_elf();
  elf.section(".nv_fatbin", SHT_PROGBITS,
              FatbinBuilder{}.cubin(arch_of(90), cubin_of(90, {"a", "b"})).build(), 0, 0, kLoaded, kFatbin);
  Buffer parts;
  std::vector<std::uint64_t> at;
  for (const unsigned sm : {70U, 80U}) {
    pad_to(parts, 8);
    at.push_back(kParts + parts.size());
    append(parts,
           Bytes(FatbinBuilder{}.ptx(arch_of(sm), {8, 0}, ptx_of(sm, {sm == 70 ? "a" : "b"})).build()));
  }
  elf.section("__nv_relfatbin", SHT_PROGBITS, parts, 0, 0, kLoaded, kParts);
  Buffer wrapper;
  append(wrapper, image::kWrapperMagic);
  append(wrapper, std::uint32_t{2});
  append(wrapper, kFatbin);
  append(wrapper, kList);
  elf.section(".nvFatBinSegment", SHT_PROGBITS, wrapper, 0, 0, kLoaded, kWrapper);
  Buffer list;
  for (const int part : listed) append(list, at[static_cast<std::size_t>(part)]);
  append(list, std::uint64_t{0});
  elf.section(".data", SHT_PROGBITS, list, 0, 0, kLoaded, kList);
  return elf.build();
}

TEST_F(QueryAnswers, PartsOfRelocatableCodeBelongToTheModuleThatListsThem) {
  const std::string both = write("both", Bytes(linked_program({0, 1})));
  EXPECT_EQ(ask(both, 90, "a").code, KSHIM_CODE_SASS);
  EXPECT_EQ(ask(both, 86, "b").code, KSHIM_CODE_JIT);
  EXPECT_STREQ(ask(both, 86, "b").answer.image, "compute_80");
  // compute_80 is taken, and only the other part has the kernel.
  EXPECT_EQ(ask(both, 86, "a").reason, "kernel_missing_from_image");
  EXPECT_EQ(ask(both, 75, "a").code, KSHIM_CODE_JIT);
  const std::string one = write("one", Bytes(linked_program({0})));
  EXPECT_EQ(ask(one, 86, "a").code, KSHIM_CODE_JIT);
  EXPECT_STREQ(ask(one, 86, "a").answer.image, "compute_70");
  const std::string none = write("none", Bytes(linked_program({})));  // filled by constructors: all parts
  EXPECT_EQ(ask(none, 86, "b").code, KSHIM_CODE_JIT);
}

TEST_F(QueryAnswers, ListsOfImagesEndWithinTheAnswer) {
  FatbinBuilder fatbin;
  for (unsigned number = 20; number < 99; ++number)
    fatbin.cubin(arch_of(number), cubin_of(number, {"scale"}));
  const Asked asked = ask(write("f.fatbin", fatbin), 120);
  const std::string have = asked.answer.have;
  EXPECT_LT(have.size(), sizeof asked.answer.have);
  EXPECT_TRUE(have.starts_with("sm_20 sm_21 ")) << have;
  EXPECT_TRUE(have.ends_with(" ...")) << have;
}

}  // namespace
}  // namespace kshim::test

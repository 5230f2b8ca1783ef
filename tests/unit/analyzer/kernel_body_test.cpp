// SPDX-License-Identifier: Apache-2.0
// What is left of a kernel behind a guard: words as ptxas 12.9 and 13.0 write them.
#include "analyzer/device_code/kernel_body.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cubin_builder.h"

namespace kshim::test {
namespace {

Buffer words(const std::vector<std::uint64_t>& instructions, bool volta, std::size_t size) {
  Buffer out;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (!volta && i % 3 == 0) append(out, std::uint64_t{0x001fbc00fde007f6});
    append(out, instructions[i]);
    if (volta) append(out, std::uint64_t{0x000fc60000000f00});
  }
  out.resize(std::max(out.size(), size));
  return out;
}

Buffer cubin(unsigned number, Buffer text, const char* calls = nullptr) {
  ElfBuilder elf;
  elf.flags = 0x6000002U | number << 8;
  const std::uint64_t size = text.size();
  const auto section = elf.section(".text.k", 1, std::move(text));
  elf.symbol("k", 0x12, 0x10, section, 0, size);
  Buffer info;
  if (calls != nullptr) append_info(info, 0x0f, {elf.symbol(calls, 0x12, 0, 0, 0, 0)});
  elf.section(".nv.info.k", 0x70000000, info);
  return elf.build();
}

BodyKind kind(unsigned number, const std::vector<std::uint64_t>& instructions, std::size_t size = 0,
              const char* calls = nullptr) {
  const Buffer image = cubin(number, words(instructions, number >= 70, size), calls);
  return read_body(image::ImageKind::cubin, image, "k").kind;
}

constexpr std::uint64_t kMove = 0x00000a0000017a02;   // MOV R1, c[0x0][0x28]
constexpr std::uint64_t kLoad = 0x0000df00ff017b82;   // LDC R1, c[0x0][0x37c]
constexpr std::uint64_t kNever = 0x000000fffffff389;  // of sm_70, with a predicate that is never true
constexpr std::uint64_t kExit = 0x000000000000794d;
constexpr std::uint64_t kTrap = 0x000000040000795c;
constexpr std::uint64_t kStore = 0x0000000502007986;

TEST(KernelBody, MachineCode) {
  EXPECT_EQ(kind(75, {kMove, kExit}), BodyKind::returns);
  EXPECT_EQ(kind(120, {kLoad, kExit}), BodyKind::returns);
  EXPECT_EQ(kind(70, {kMove, kNever, kExit}), BodyKind::returns);
  EXPECT_EQ(kind(80, {kMove, kTrap}), BodyKind::stops);
  EXPECT_EQ(kind(90, {kLoad, kStore, kExit}), BodyKind::works);
  EXPECT_EQ(kind(90, {kLoad, 0x000000000000094d, kStore, kExit}), BodyKind::works) << "@P0 EXIT";
  // Maxwell and Pascal.
  EXPECT_EQ(kind(61, {0x4c98078000870001, 0x50b0000000070f00, 0x50b0000000070f00, 0xe30000000007000f}),
            BodyKind::returns);
  EXPECT_EQ(kind(52, {0x4c98078000870001, 0xe3a00000001000c0}), BodyKind::stops);
  EXPECT_EQ(kind(52, {0x4c98078000870001, 0xeedc200000070200, 0xe30000000007000f}), BodyKind::works);
  EXPECT_EQ(kind(35, {kExit}), BodyKind::unknown);
}

TEST(KernelBody, APrinterIsSmallAndCallsPrintf) {
  constexpr std::uint64_t kCall = 0x0000000002007343;
  EXPECT_EQ(kind(75, {kMove, kCall, kExit}, 384, "vprintf"), BodyKind::prints);
  EXPECT_EQ(kind(75, {kMove, kCall, kExit}, 384, "__assertfail"), BodyKind::prints);
  EXPECT_EQ(kind(75, {kMove, kCall, kExit}, 384, "malloc"), BodyKind::works);
  EXPECT_EQ(kind(75, {kMove, kCall, kExit}, 4096, "vprintf"), BodyKind::works);
}

TEST(KernelBody, CutOrForeign) {
  const Buffer whole = cubin(75, words({kMove, kExit}, true, 128));
  EXPECT_EQ(read_body(image::ImageKind::cubin, whole, "other").kind, BodyKind::unknown);
  for (std::size_t size = 0; size < whole.size(); size += 3)
    read_body(image::ImageKind::cubin, Bytes(whole).first(size), "k");
  EXPECT_EQ(kind(75, {kMove, kMove}), BodyKind::unknown) << "it ends without an end";
}

BodyKind ptx(std::string_view body) {
  const std::string text =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{" +
      std::string(body) + "}\n.visible .entry next()\n{\n\tst.global.f32 [%rd1], %f1;\n\tret;\n}\n";
  return read_body(image::ImageKind::ptx, bytes_of(text), "k").kind;
}

TEST(KernelBody, Ptx) {
  EXPECT_EQ(ptx("\n\tret;\n"), BodyKind::returns);
  EXPECT_EQ(ptx("\n\n\t// begin inline asm\n\ttrap;\n\t// end inline asm\n\tret;\n"), BodyKind::stops);
  EXPECT_EQ(ptx("\n\t.reg .b64 \t%rd<3>;\n\tmov.u64 \t%rd1, $str;\n\tcvta.global.u64 \t%rd2, %rd1;\n\t{ // "
                "callseq 0, 0\n"
                "\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd2;\n\tcall.uni (retval0), "
                "\n\tvprintf, \n\t(\n\tparam0, \n"
                "\tparam1\n\t);\n\tld.param.b32 \t%r1, [retval0+0];\n\t} // callseq 0\n\tret;\n"),
            BodyKind::prints);
  EXPECT_EQ(ptx("\n\tld.param.u64 \t%rd1, [k_param_0];\n\tst.global.f32 \t[%rd1], %f1;\n\tret;\n"),
            BodyKind::works);
  EXPECT_EQ(ptx("\n\tcall.uni \n\t_Z4realv, \n\t(\n\t);\n\tret;\n"), BodyKind::works);
}

TEST(KernelBody, AStubHasAnOriginal) {
  EXPECT_TRUE(is_stub_of({BodyKind::returns, 128}, {BodyKind::works, 384}));
  EXPECT_FALSE(is_stub_of({BodyKind::returns, 128}, {BodyKind::returns, 256})) << "empty by intent";
  EXPECT_FALSE(is_stub_of({BodyKind::returns, 128}, {}));
  EXPECT_TRUE(is_stub_of({BodyKind::prints, 384}, {BodyKind::works, 5248}));
  EXPECT_FALSE(is_stub_of({BodyKind::prints, 384}, {BodyKind::works, 768})) << "it may well be all of it";
  EXPECT_FALSE(is_stub_of({BodyKind::works, 384}, {BodyKind::works, 5248}));
}

}  // namespace
}  // namespace kshim::test

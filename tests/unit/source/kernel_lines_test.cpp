// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cstdlib>

#include "analyzer/device_code/source_lines.h"
#include "line_fixture.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/object_file_fixture.h"

namespace kshim::test {
namespace {

using image::ImageKind;
using ::testing::IsEmpty;

std::map<std::string, SourceLine> lines_of(LineTable table, bool addends = false) {
  const Buffer lines = table.build();
  std::vector<std::string> names;
  for (const auto& [name, line] : table.kernels) names.push_back(name);
  const Buffer cubin = cubin_with(lines, table.places, names, addends);
  return kernel_lines(ImageKind::cubin, cubin);
}

TEST(KernelLines, AreTheFirstRowsOfTheirSequences) {
  for (const bool addends : {false, true}) {
    const auto got = lines_of({}, addends);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_EQ(got.at("_Z1av").file, "/src/a.cu");
    EXPECT_EQ(got.at("_Z1av").line, 7U);
    EXPECT_EQ(got.at("_Z1bv").line, 20U);
  }
}
TEST(KernelLines, AFileThatIsNotListedIsNone) {
  LineTable table;
  table.file = 9;
  EXPECT_THAT(lines_of(table), IsEmpty());
}
TEST(KernelLines, AnotherVersionIsNotRead) {
  LineTable table;
  table.version = 5;
  EXPECT_THAT(lines_of(table), IsEmpty());
}
TEST(KernelLines, ARangeOfNothingIsNotDividedBy) {
  LineTable table;
  table.line_range = 0;
  EXPECT_THAT(lines_of(table), IsEmpty());
}
TEST(KernelLines, ASequenceWithoutARelocationIsNobodys) {
  LineTable table;
  const Buffer lines = table.build();
  EXPECT_THAT(kernel_lines(ImageKind::cubin, cubin_with(lines, {3}, {"_Z1av"})), IsEmpty());
  EXPECT_THAT(kernel_lines(ImageKind::cubin, cubin_with(lines, {}, {})), IsEmpty());
}
TEST(KernelLines, EveryCutIsSurvived) {
  LineTable table;
  const Buffer lines = table.build();
  for (std::size_t size = 0; size < lines.size(); ++size) {
    const Buffer cut(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(size));
    // The unit says that it is longer than the section: nothing of it is believed.
    EXPECT_THAT(kernel_lines(ImageKind::cubin, cubin_with(cut, table.places, {"_Z1av", "_Z1bv"})), IsEmpty())
        << size;
    Buffer fitted = cut;
    if (size < 4) continue;
    const auto left = static_cast<std::uint32_t>(size - 4);
    std::memcpy(fitted.data(), &left, sizeof(left));
    EXPECT_LE(kernel_lines(ImageKind::cubin, cubin_with(fitted, table.places, {"_Z1av", "_Z1bv"})).size(),
              2U);
  }
}
TEST(KernelLines, EveryChangedByteIsSurvived) {
  LineTable table;
  const Buffer lines = table.build();
  for (std::size_t at = 0; at < lines.size(); ++at) {
    for (const unsigned value : {0x00U, 0x7fU, 0x80U, 0xffU}) {
      Buffer changed = lines;
      changed[at] = static_cast<std::byte>(value);
      EXPECT_LE(kernel_lines(ImageKind::cubin, cubin_with(changed, table.places, {"_Z1av", "_Z1bv"})).size(),
                2U);
    }
  }
}
TEST(KernelLines, NumbersWithoutEndAreSurvived) {
  LineTable table;
  Buffer lines = table.build();
  // advance_line by a LEB128 that goes on to the end of the section
  lines[static_cast<std::size_t>(table.places[0]) + 10] = std::byte{3};
  for (std::size_t at = static_cast<std::size_t>(table.places[0]) + 11; at < lines.size(); ++at)
    lines[at] = std::byte{0xff};
  EXPECT_THAT(kernel_lines(ImageKind::cubin, cubin_with(lines, table.places, {"_Z1av", "_Z1bv"})), IsEmpty());
}
TEST(KernelLines, WithoutATableThereAreNone) {
  EXPECT_THAT(kernel_lines(ImageKind::cubin, cubin(86, {"_Z1av"})), IsEmpty());
  EXPECT_THAT(kernel_lines(ImageKind::cubin, bytes_of("no ELF")), IsEmpty());
  EXPECT_THAT(kernel_lines(ImageKind::ltoir, bytes_of("x")), IsEmpty());
}

constexpr std::string_view kPtx = R"(.version 9.0
.target sm_86
.visible .entry _Z1av(
	.param .u64 _Z1av_param_0
)
{
	.loc	1 4 0
	.loc	2 9 3
	ret;
}
.func helper()
{
	.loc	1 99 0
}
.entry _Z1bv()
{
	.loc	2 8 0
}
	.file	1 "/src/a.cu"
	.file	2 "/src/b.cuh", 1, 2
)";
TEST(PtxLines, AreTheFirstOfEachEntry) {
  const auto got = kernel_lines(ImageKind::ptx, bytes_of(kPtx));
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got.at("_Z1av").file, "/src/a.cu");
  EXPECT_EQ(got.at("_Z1av").line, 4U);
  EXPECT_EQ(got.at("_Z1bv").file, "/src/b.cuh");
  EXPECT_EQ(got.at("_Z1bv").line, 8U);
}
TEST(PtxLines, EveryCutIsSurvived) {
  for (std::size_t size = 0; size < kPtx.size(); ++size)
    EXPECT_LE(kernel_lines(ImageKind::ptx, bytes_of(kPtx.substr(0, size))).size(), 2U);
}
TEST(PtxLines, OddDirectivesAreSkipped) {
  EXPECT_THAT(
      kernel_lines(ImageKind::ptx, bytes_of(".entry a()\n\t.loc\tx 4\n\t.loc\t1 0 0\n.entry "
                                            "b\n\t.loc\t1\n\t.loc\t7 1 1\n.file\n.file 1\n.file 1 \"\n")),
      IsEmpty());
}

#ifdef KSHIM_TEST_NVCC
// What nvcc of this machine writes, for each way of asking it for lines.
TEST(KernelLinesOfNvcc, AreWhereTheKernelsAre) {
  const TemporaryFolder folder;
  const std::string source =
      folder
          .write("lines.cu",
                 "__device__ int one() { return 1; }\n\n__global__ void first(int* x) { *x = one(); }\n\n\n"
                 "template <class T>\n__global__ void second(T* x) {\n  *x = 2;\n}\ntemplate __global__ void "
                 "second<int>(int*);\n")
          .string();
  const auto compile = [&](const std::string& options, const std::string& out) {
    const std::string path = (folder.path() / out).string();
    const std::string command =
        fmt::format("'{}' {} -o '{}' '{}' >/dev/null 2>&1", KSHIM_TEST_NVCC, options, path, source);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream in(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const struct {
    const char* options;
    const char* out;
    ImageKind kind;
  } rows[] = {{"-lineinfo -arch=sm_90 -cubin", "a.cubin", ImageKind::cubin},
              {"-G -arch=sm_90 -cubin", "b.cubin", ImageKind::cubin},
              {"-lineinfo -rdc=true -arch=sm_90 -cubin", "c.cubin", ImageKind::cubin},
              {"-lineinfo -arch=compute_90 -ptx", "d.ptx", ImageKind::ptx}};
  for (const auto& row : rows) {
    const std::string bytes = compile(row.options, row.out);
    const auto got = kernel_lines(row.kind, bytes_of(bytes));
    ASSERT_EQ(got.count("_Z5firstPi"), 1U) << row.options;
    ASSERT_EQ(got.count("_Z6secondIiEvPT_"), 1U) << row.options;
    EXPECT_EQ(got.at("_Z5firstPi").file, source) << row.options;
    EXPECT_EQ(got.at("_Z5firstPi").line, 3U) << row.options;
    EXPECT_EQ(got.at("_Z6secondIiEvPT_").line, 7U) << row.options;
  }
  EXPECT_THAT(kernel_lines(ImageKind::cubin, bytes_of(compile("-arch=sm_90 -cubin", "e.cubin"))), IsEmpty());
}
#endif

}  // namespace
}  // namespace kshim::test

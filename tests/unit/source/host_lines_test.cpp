// SPDX-License-Identifier: Apache-2.0
// What elfutils says in its own process, held against addr2line of binutils, and what it does not survive.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "analyzer/device_code/object_file.h"
#include "analyzer/device_code/source_lines.h"
#include "tests/support/command_names.h"
#include "tests/unit/analyzer/report_text.h"

namespace kshim::test {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string out;
  char part[4096];
  while (const std::size_t got = std::fread(part, 1, sizeof(part), pipe.get())) out.append(part, got);
  return out;
}

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The range of a function of the fixture.
std::vector<std::uint64_t> addresses_of(const std::string& path, std::string_view function) {
  const std::string bytes = read(path);
  const auto elf = image::ElfReader::open(bytes_of(bytes));
  if (!elf) return {};
  const auto table = elf->section(".symtab");
  for (std::uint64_t i = 0; table && i < elf->symbol_count(*table); ++i) {
    const auto symbol = elf->symbol(*table, i);
    if (!symbol || symbol->name != function) continue;
    std::vector<std::uint64_t> out;
    for (std::uint64_t at = 0; at < symbol->size && out.size() < 64; ++at) out.push_back(symbol->value + at);
    return out;
  }
  return {};
}

/// As addr2line prints it: "FUNCTION\nFILE:LINE\n" for each frame, file without its folder.
std::string as_text(const SourceFrames& frames) {
  std::string out;
  for (const SourceFrame& frame : frames)
    out += fmt::format("{}\n{}:{}\n", frame.function, frame.at.file.substr(frame.at.file.rfind('/') + 1),
                       frame.at.line);
  return out;
}

bool is_stripped(const std::string& path) {
  const std::string bytes = read(path);
  const auto elf = image::ElfReader::open(bytes_of(bytes));
  return elf && !elf->section(".symtab");
}

class HostLines : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_stripped(GetParam())) GTEST_SKIP() << "this build strips its programs";
  }
  static HostFile file(const std::string& path) { return {path, build_id_of(path), "/"}; }
  TemporaryFolder folder_;
};

TEST_P(HostLines, AreThoseOfAddr2line) {
  const auto addresses = addresses_of(GetParam(), "kshim_lines_outer");
  ASSERT_THAT(addresses, SizeIs(::testing::Gt(10U)));
  const auto got = host_lines(file(GetParam()), addresses);
  bool inlined = false;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::string said =
        output_of(fmt::format("addr2line -i -f -s -e '{}' {:#x} 2>/dev/null", GetParam(), addresses[i]));
    if (said.empty()) GTEST_SKIP() << "no addr2line here";
    for (std::size_t at = said.find(" (discriminator"); at != std::string::npos;
         at = said.find(" (discriminator"))
      said.erase(at, said.find('\n', at) - at);
    EXPECT_EQ(as_text(got[i]), said) << i;
    inlined = inlined || got[i].size() > 1;
  }
  EXPECT_TRUE(inlined);
}
TEST_P(HostLines, TellWhatWasInlinedAndInto) {
  const auto addresses = addresses_of(GetParam(), "kshim_lines_outer");
  const std::string text = read(__FILE__ "/../lines_fixture.cpp");
  for (const SourceFrames& frames : host_lines(file(GetParam()), addresses)) {
    if (frames.size() < 2) continue;
    EXPECT_THAT(frames[0].at.file, ::testing::EndsWith("lines_fixture.cpp"));
    EXPECT_TRUE(frames[0].at.file.starts_with('/'));
    EXPECT_EQ(frames[0].function, "_ZN5lines5innerEm");
    EXPECT_EQ(frames[1].function, "kshim_lines_outer");
    EXPECT_GT(frames[1].at.line, frames[0].at.line);
    return;
  }
  FAIL() << "nothing inlined";
}
TEST_P(HostLines, AStrippedFilesLinesAreInItsDebugFile) {
  const std::string stripped = (folder_.path() / "stripped.so").string();
  const HostFile whole = file(GetParam());
  ASSERT_GT(whole.build_id.size(), 8U);
  HostFile asked{stripped, whole.build_id, folder_.path()};
  const std::filesystem::path debug = debug_file(asked);
  std::filesystem::create_directories(debug.parent_path());
  if (std::system(fmt::format("objcopy --strip-debug '{0}' '{1}' && objcopy --only-keep-debug '{0}' '{2}'",
                              GetParam(), stripped, debug.string())
                      .c_str()) != 0)
    GTEST_SKIP() << "no objcopy here";
  const auto addresses = addresses_of(GetParam(), "kshim_lines_outer");
  EXPECT_TRUE(has_debug_file(asked));
  EXPECT_EQ(as_text(host_lines(asked, addresses)[4]), as_text(host_lines(whole, addresses)[4]));
  // A debug file of another build is none.
  const std::string other =
      asked.build_id.substr(0, asked.build_id.size() - 1) + (asked.build_id.back() == '0' ? '1' : '0');
  std::filesystem::copy(debug, debug_file({stripped, other, folder_.path()}));
  EXPECT_THAT(host_lines({stripped, other, folder_.path()}, addresses), Each(IsEmpty()));
  std::filesystem::remove(debug);
  EXPECT_FALSE(has_debug_file(asked));
  EXPECT_THAT(host_lines(asked, addresses), Each(IsEmpty()));
}
TEST_P(HostLines, AnotherBuildIdIsNotRead) {
  EXPECT_THAT(host_lines({GetParam(), "abcdef", "/"}, addresses_of(GetParam(), "kshim_lines_outer")),
              Each(IsEmpty()));
}
TEST_P(HostLines, AddressesOutsideHaveNone) {
  EXPECT_THAT(host_lines(file(GetParam()), {0, 1, 0x7fffffffffff, UINT64_MAX}), Each(IsEmpty()));
}
TEST_P(HostLines, DamageHarmsNobody) {
  const std::string whole = read(GetParam());
  const auto addresses = addresses_of(GetParam(), "kshim_lines_outer");
  const auto elf = image::ElfReader::open(bytes_of(whole));
  ASSERT_TRUE(elf);
  for (const char* name : {".debug_info", ".debug_abbrev", ".debug_line", ".debug_aranges", ".debug_str"}) {
    const auto section = elf->section(std::string_view(name));
    if (!section || section->bytes.empty()) continue;
    for (std::size_t part = 0; part < 12; ++part) {
      std::string damaged = whole;
      const auto at = static_cast<std::size_t>(section->offset) + section->bytes.size() * part / 12;
      for (std::size_t i = 0; i < 16 && i < section->bytes.size() - section->bytes.size() * part / 12; ++i)
        damaged[at + i] = static_cast<char>(part % 2 == 0 ? 0xff : 0x80 + i);
      const std::string path = folder_.write("damaged.so", damaged).string();
      EXPECT_THAT(host_lines({path, build_id_of(path), "/"}, addresses), SizeIs(addresses.size())) << name;
    }
  }
  for (std::size_t size = 0; size < whole.size(); size += whole.size() / 20) {
    const std::string path = folder_.write("cut.so", whole.substr(0, size)).string();
    EXPECT_THAT(host_lines({path, file(GetParam()).build_id, "/"}, addresses), SizeIs(addresses.size()));
  }
}
INSTANTIATE_TEST_SUITE_P(Dwarf, HostLines, ::testing::Values(KSHIM_TEST_LINES_4, KSHIM_TEST_LINES_5));

TEST(HostLinesOf, WhatIsNoFileAreNone) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::filesystem::path& path :
       {pipe, folder.path(), folder.path() / "absent", std::filesystem::path("/dev/zero")})
    EXPECT_THAT(host_lines({path, "", "/"}, {1, 2}), Each(IsEmpty())) << path;
  EXPECT_THAT(host_lines({"/bin/sh", "", "/"}, std::vector<std::uint64_t>(10'000)), SizeIs(10'000));
}
TEST(DebugFile, IsNamedByABuildIdAndNothingElse) {
  EXPECT_EQ(debug_file({"", "abcdef", "/"}), "/usr/lib/debug/.build-id/ab/cdef.debug");
  EXPECT_EQ(debug_file({"", "../../etc", "/"}), "");
  EXPECT_EQ(debug_file({"", "ab", "/"}), "");
  EXPECT_EQ(debug_file({"", std::string(1000, 'a'), "/"}), "");
}

}  // namespace
}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
// Which files are looked at, whose they are, and how the matrix shows them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "analyzer/input/files/walk.h"
#include "analyzer/render/document.h"
#include "analyzer/render/render.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/render/sentences.h"
#include "kshim/image/cubin.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "kshim-scan-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  void TearDown() override { fs::remove_all(path_); }
  fs::path write(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  fs::path path_;
};

using Walks = Folder;
TEST_F(Walks, EachFileOnceByWhicheverName) {
  const fs::path file = write("a/one", "1");
  fs::create_hard_link(file, path_ / "a/two");
  fs::create_symlink("one", path_ / "a/three");
  fs::create_directory_symlink(".", path_ / "a/self");
  const Inputs inputs = list_inputs({path_});
  EXPECT_EQ(inputs.files.size(), 1U);
  EXPECT_EQ(inputs.duplicates, 2U);
  EXPECT_TRUE(inputs.notes.empty());
}
TEST_F(Walks, WhatIsNamedAndNotThereIsANote) {
  const Inputs inputs = list_inputs({path_ / "missing", "/dev/null"});
  EXPECT_TRUE(inputs.files.empty());
  EXPECT_EQ(inputs.notes.size(), 2U);
}
TEST_F(Walks, TheFilesOwnNameIsShown) {
  const fs::path file = write("m/real", "1");
  fs::create_symlink("real", path_ / "m/a-link");
  fs::create_symlink("real", path_ / "m/z-link");
  fs::create_hard_link(file, path_ / "m/second");
  const Inputs inputs = list_inputs({path_});
  ASSERT_EQ(inputs.files.size(), 1U);
  EXPECT_EQ(inputs.files[0].path, file);
  EXPECT_EQ(inputs.duplicates, 3U);
  const Inputs named = list_inputs({path_, path_ / "m/z-link"});
  ASSERT_EQ(named.files.size(), 1U);
  EXPECT_EQ(named.files[0].path, path_ / "m/z-link") << "the user's own word for it";
  EXPECT_TRUE(named.files[0].named);
}
TEST_F(Walks, LinksThatLeadNowhereAreNoNote) {
  fs::create_symlink("missing", path_ / "nowhere");
  fs::create_symlink("round", path_ / "round");
  write("file", "1");
  const Inputs inputs = list_inputs({path_});
  EXPECT_EQ(inputs.files.size(), 1U);
  EXPECT_TRUE(inputs.notes.empty());
}
TEST_F(Walks, PathsThatAreTooLongAreNotes) {
  // As deep as a path may say, then a folder and a file more.
  const int start = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::string name(250, 'd');
  int at = ::dup(start);
  for (int depth = 0; depth < 17; ++depth) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0777), 0);
    const int next = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = next;
  }
  ::close(::openat(at, "kernel.cubin", O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  ::close(at);
  ::close(start);
  write("near", "1");
  const Inputs inputs = list_inputs({path_});
  EXPECT_EQ(inputs.files.size(), 1U);
  ASSERT_EQ(inputs.notes.size(), 1U);
  EXPECT_TRUE(inputs.notes[0].place.starts_with(path_.string() + "/ddd")) << inputs.notes[0].place;
  EXPECT_EQ(inputs.notes[0].what, "File name too long");
}
// What a child without root's rights finds, a line each; root reads every folder.
std::string as_nobody(const fs::path& path) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string out;
    constexpr unsigned kNobody = 65534;
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) out = "cannot drop";
    for (const ReadNote& note : out.empty() ? list_inputs({path}).notes : std::vector<ReadNote>())
      out += note.text() + '\n';
    const bool whole = ::write(ends[1], out.data(), out.size()) == static_cast<ssize_t>(out.size());
    ::_exit(whole ? 0 : 1);
  }
  ::close(ends[1]);
  std::string out;
  std::array<char, 4096> block{};
  for (ssize_t got = 0; (got = ::read(ends[0], block.data(), block.size())) > 0;)
    out.append(block.data(), static_cast<std::size_t>(got));
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return out;
}
TEST_F(Walks, FoldersThatMayNotBeReadAreNotes) {
  write("open/file", "1");
  write("shut/file", "1");
  write("listed/file", "1");
  write("listed/more", "1");
  ::chmod(path_.c_str(), 0755);
  ::chmod((path_ / "shut").c_str(), 0);
  ::chmod((path_ / "listed").c_str(), 0444);
  const std::string notes = as_nobody(path_);
  ::chmod((path_ / "shut").c_str(), 0755);
  ::chmod((path_ / "listed").c_str(), 0755);
  if (notes == "cannot drop") GTEST_SKIP() << "root here, and not allowed to be somebody else";
  EXPECT_NE(notes.find((path_ / "shut").string() + ": Permission denied\n"), std::string::npos) << notes;
  EXPECT_NE(notes.find((path_ / "listed").string() + ": what is in it"), std::string::npos) << notes;
  EXPECT_EQ(std::count(notes.begin(), notes.end(), '\n'), 2) << notes;
}

Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
FileKind kind_of(std::string_view first, std::string_view name = "x") {
  return file_kind(bytes_of(first), name, 1000);
}
TEST(FileKinds, ByFirstBytesAndForSomeByName) {
  using namespace std::string_view_literals;
  EXPECT_EQ(kind_of("\x7f"
                    "ELF\2\1\1"),
            FileKind::device_code);
  EXPECT_EQ(kind_of("MZ\x90", "x.dll"), FileKind::device_code);
  EXPECT_EQ(kind_of("//\n.version 8.0\n"), FileKind::device_code);
  EXPECT_EQ(kind_of("\xef\xbb\xbf.version 8.0\n"), FileKind::device_code);
  EXPECT_EQ(kind_of("// only a comment so far", "x.ptx"), FileKind::device_code);
  for (const std::string_view container : {"!<arch>\n"sv, "PK\3\4"sv, "\x28\xb5\x2f\xfd"sv, "BZh9"sv})
    EXPECT_EQ(kind_of(container, "model.pt"), FileKind::container);
  for (const std::string_view text : {""sv, "import torch\n"sv, "\xff\xfet\0e\0"sv})
    EXPECT_EQ(kind_of(text, "x.cubin"), FileKind::text) << text;
  for (const std::string_view plain :
       {"\x89PNG\r\n\x1a\n\0"sv, "\xa7\r\r\n\0\0\0\0\0\0\0\0\0\0\0\0"sv, "GGUF\3\0"sv,
        "\xca\xfe\xba\xbe\0\0\0\x3d"sv, "\x1a\1\x19\0\2\0\5\0"sv})
    EXPECT_EQ(kind_of(plain, "x.cubin"), FileKind::plain) << plain;
  EXPECT_EQ(file_kind(bytes_of("\0\1\2"sv), "x.cubin", 79), FileKind::plain) << "smaller than any image";
  for (const std::string_view data :
       {"\0\1\2"sv, "\xca\xfe\xba\xbe\0\0\0\2"sv, "BC\xc0\xde"sv, "\x93NUMPY\1\0"sv, "text\0more"sv})
    EXPECT_EQ(kind_of(data, "x.txt"), FileKind::data) << data;
  EXPECT_EQ(file_kind(bytes_of("#!/bin/sh\n"), "x.run", 1U << 30U), FileKind::data) << "extracts itself";
}
TEST(FileKinds, NamesThatSayEnoughOfWhatNobodyNamed) {
  for (const char* name :
       {"a/b.class", "a.jar!b/C.java", "x.ko.xz", "/usr/share/man/man1/ls.1.gz", "model/data/17"})
    EXPECT_TRUE(has_plain_name(name)) << name;
  for (const char* name : {"a/libx.so", "libx.so.1.gz", "x.cubin", "x.json", "x.txt", "x", "data/17x",
                           "a/data/x.cubin", "/opt/man/x.cubin", "x.bin.zst"})
    EXPECT_FALSE(has_plain_name(name)) << name;
}
TEST(FileKinds, OfDataHaveAName) {
  using namespace std::string_view_literals;
  EXPECT_EQ(data_kind(bytes_of("BC\xc0\xde"), "libdevice.10.bc").name, "LLVM bitcode");
  EXPECT_EQ(data_kind(bytes_of("ftrt"), "a.whl!models/x.engine").name, ".engine file");
  EXPECT_EQ(data_kind(bytes_of("ftrt"), "a.whl!models/x").name, "file without an ending");
  EXPECT_EQ(data_kind(bytes_of("\x93NUMPY\1\0"sv), "x.npy").contents, DataKind::Contents::open);
  EXPECT_EQ(data_kind(bytes_of("ftrt"), "x.engine").contents, DataKind::Contents::unknown);
  EXPECT_EQ(data_kind(bytes_of("PAR1"), "x").contents, DataKind::Contents::packed);
}

TEST(Sizes, AreDecimalAndShort) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1'500), "1.5 kB");
  EXPECT_EQ(size_text(2'340'000'000), "2.3 GB");
  EXPECT_EQ(size_text(999'600'000), "1.0 GB");
  EXPECT_EQ(size_text(12'000'000), "12 MB");
}

TEST(Sizes, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(parse_size("1000000000"), 1'000'000'000U);
  EXPECT_EQ(parse_size("50M"), 50'000'000U);
  EXPECT_EQ(parse_size("1.5 GB"), 1'500'000'000U);
  EXPECT_EQ(parse_size("300MiB"), std::uint64_t{300} << 20);
  for (const char* text : {"", " ", "M", "-1", "x", "64MM", "1e9", "inf", "nan", "0x10", "1.5.5",
                           "99999999999G", "99999999999999999999999"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

Scan two_files() {
  Scan scan;
  scan.targets = {*image::parse_arch("12.0")};
  for (const char* name : {"lib/a.so", "lib/\x1b[31mb.so"}) {
    ScannedObject object;
    object.path = name;
    object.package = {"foo", "1.0"};
    object.images.push_back({{image::ImageKind::cubin, *image::parse_arch("8.0"), {}}, 1, 10});
    object.targets.push_back({.target = scan.targets[0], .lacking = 1});
    scan.objects.push_back(object);
  }
  return scan;
}
TEST(Matrices, OneRowAFileOrOneADistribution) {
  const Scan scan = two_files();
  EXPECT_EQ(matrix_rows(scan, false).size(), 2U);
  const auto summed = matrix_rows(scan, true);
  ASSERT_EQ(summed.size(), 1U);
  EXPECT_EQ(summed[0].name, "foo 1.0 (2 files)");
  EXPECT_EQ(summed[0].images[0].count, 2U);
  EXPECT_EQ(summed[0].targets[0].lacking, 2U);
}
TEST(Matrices, MembersOfOneNameAreTwoRows) {
  Scan scan = two_files();
  for (ScannedObject& object : scan.objects) {
    object.path = "qq.a";
    object.member = "dup.o";
  }
  scan.objects[1].targets[0] = {.target = scan.targets[0], .sass = 1};
  const auto rows = matrix_rows(scan, false);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "qq.a!dup.o (1 of 2)");
  EXPECT_EQ(rows[0].targets[0].worst, Outcome::none);
  EXPECT_EQ(rows[1].name, "qq.a!dup.o (2 of 2)");
  EXPECT_EQ(rows[1].targets[0].worst, Outcome::sass);
}
TEST(Matrices, ADistributionIsAsBadAsItsWorstFile) {
  Scan scan = two_files();
  scan.objects[1].targets[0] = {.target = scan.targets[0], .sass = 1};
  const auto rows = matrix_rows(scan, true);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].targets[0].worst, Outcome::none);
  EXPECT_EQ(rows[0].targets[0].files_none, 1U);
}
std::string as(Format format, const Scan& scan) { return rendered(scan, format, {.width = 100}); }
TEST(Matrices, ALibraryThatPicksIsNotSaidToHaveEverything) {
  Scan scan = two_files();
  scan.objects.resize(1);
  EXPECT_EQ(as(Format::text, scan).find("picks"), std::string::npos);
  scan.objects[0].targets[0] = {.target = scan.targets[0], .sass = 3, .lacking = 4, .picks = true};
  std::string text = as(Format::text, scan);
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_NE(text.find("picks its code by GPU"), std::string::npos) << text;
  EXPECT_NE(text.find("- = no kernels"), std::string::npos) << text;
  for (const char* lie : {"every kernel", "nothing lacks"})
    EXPECT_EQ(text.find(lie), std::string::npos) << text;
  const std::string page = as(Format::markdown, scan);
  EXPECT_NE(page.find("\u2713 picks by GPU: 3 of 7 modules have code"), std::string::npos) << page;
}
TEST(Matrices, LinesAreNoWiderThanANarrowTerminal) {
  Scan scan = two_files();
  for (const char* arch : {"7.0", "7.5", "8.6", "8.9", "9.0", "10.0", "12.0"})
    scan.objects[0].images.push_back({{image::ImageKind::cubin, *image::parse_arch(arch), {}}, 1, 10});
  std::istringstream text(rendered(scan, Format::text, {.width = 40}));
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line) && !line.starts_with("0 files"); ++lines) {
    if (!line.starts_with("ok:")) {
      EXPECT_LE(line.size(), 40U) << line;
    }
  }
  EXPECT_GT(lines, 4U);
}
TEST(NameCells, TellNamesApart) {
  const std::string tag = ".cpython-311-x86_64-linux-gnu.so";
  const std::vector<std::string> names = {"cupy/cuda/cufft" + tag,
                                          "cupy/cuda/cublas" + tag,
                                          "cupy/fft/cufft" + tag,
                                          "short.so",
                                          "a very long name of an object in an archive.o",
                                          "long.a!a very long name of an object in an archive.o"};
  for (const std::size_t width : {16U, 20U, 26U, 38U}) {
    const auto cells = name_cells(names, width);
    EXPECT_EQ(std::set<std::string>(cells.begin(), cells.end()).size(), names.size()) << cells[0];
    for (const std::string& cell : cells) EXPECT_LE(cell.size(), width) << cell;
    EXPECT_EQ(cells[3], "short.so");
  }
  EXPECT_EQ(name_cells(names, 26)[0], "cupy/cuda/cufft...so");
  EXPECT_EQ(name_cells(names, 64), names);
  EXPECT_EQ(name_cells({names[0], names[0]}, 20)[0], name_cells({names[0]}, 20)[0]) << "and ends";
}
TEST(NameCells, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(terminal_columns("abc"), 3U);
  EXPECT_EQ(terminal_columns("\u6838\u5FC3"), 4U);
  EXPECT_EQ(terminal_columns("e\u0301"), 1U);
  const std::string wide = "\u6838\u5FC3\u6838\u5FC3\u6838\u5FC3\u6838\u5FC3\u6838\u5FC3.so";
  const std::string cell = name_cells({wide}, 16)[0];
  EXPECT_LE(terminal_columns(cell), 16U) << cell;
  Scan scan = two_files();
  scan.objects[0].path = "lib/\u6838\u5FC3.so";
  scan.objects[1].path = "lib/core.so";
  const std::string text = rendered(scan, Format::text, {.unicode = true, .width = 100});
  EXPECT_NE(text.find("core.so           S |   none"), std::string::npos) << text;
  EXPECT_NE(text.find("\u6838\u5FC3.so           S |   none"), std::string::npos) << text;
}
TEST(Matrices, ForeignNamesAreHarmlessAndNarrowPagesGetAList) {
  for (const unsigned width : {100U, 20U}) {
    const std::string text = rendered(two_files(), Format::text, {.width = width});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("none"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/device_code/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "dynamic_elf.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

struct Elf : DynamicElf {
  explicit Elf(std::string_view path = "/lib64/ld-linux-x86-64.so.2",
               const std::vector<std::string>& needed = {})
      : DynamicElf(path, needed) {}
};

class ElfFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kshim-elf-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { fs::remove_all(root_); }
  fs::path write(std::string_view name, std::string_view content, mode_t mode = 0755) {
    const fs::path path = root_ / name;
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string reason(const Elf& elf) { return blind_reason(write("program", elf.bytes())); }
  fs::path root_;
};

TEST_F(ElfFile, AnOrdinaryProgramIsNotBlind) {
  EXPECT_EQ(reason(Elf()), "");
  EXPECT_EQ(blind_reason("/proc/self/exe"), "");
}

TEST_F(ElfFile, AStaticProgramIs) {
  Elf elf;
  elf.header.e_phnum = 0;
  EXPECT_NE(reason(elf).find("statically linked"), std::string::npos);
  EXPECT_FALSE(must_not_preload(root_ / "program"));
}

TEST_F(ElfFile, AForeignProgramIsAndMustBeLeftAlone) {
  Elf word;
  word.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_NE(reason(word).find("another machine or word size"), std::string::npos);
  EXPECT_TRUE(must_not_preload(root_ / "program"));
  Elf machine;
  machine.header.e_machine = kOtherMachine;
  EXPECT_NE(reason(machine).find("another machine or word size"), std::string::npos);
  EXPECT_TRUE(must_not_preload(root_ / "program"));
}

TEST_F(ElfFile, AMuslProgramIsAndMustBeLeftAlone) {
  EXPECT_NE(reason(Elf("/lib/ld-musl-x86_64.so.1")).find("musl"), std::string::npos);
  EXPECT_TRUE(must_not_preload(root_ / "program"));
}

TEST_F(ElfFile, SetuidMattersWhereTheOwnerIsAnother) {
  const fs::path path = write("program", Elf().bytes(), 04755);
  if (getuid() != 0) {
    EXPECT_EQ(blind_reason(path), "");  // our own file
    GTEST_SKIP() << "only root can give a file away";
  }
  EXPECT_EQ(blind_reason(path), "");
  if (chown(path.c_str(), 65534, 65534) != 0) GTEST_SKIP() << "root of a namespace that has no other users";
  ASSERT_EQ(chmod(path.c_str(), 04755), 0);
  EXPECT_NE(blind_reason(path).find("setuid"), std::string::npos);
}

TEST_F(ElfFile, AScriptIsJudgedByItsInterpreter) {
  Elf quiet;
  quiet.header.e_phnum = 0;
  const fs::path interpreter = write("interpreter", quiet.bytes());
  EXPECT_NE(blind_reason(write("script", "#! " + interpreter.string() + " -x \nbody\n")).find("statically"),
            std::string::npos);
  const fs::path nested = write("nested", "#!" + (root_ / "script").string() + "\n");
  EXPECT_NE(blind_reason(nested).find("statically"), std::string::npos);
  // This program itself: under an emulator /bin/sh is another machine's.
  EXPECT_EQ(blind_reason(write("own", "#!" + fs::read_symlink("/proc/self/exe").string() + "\n")), "");
}

TEST_F(ElfFile, EnvInAScriptNamesTheProgram) {
  Elf quiet;
  quiet.header.e_phnum = 0;
  write("kshim-interpreter", quiet.bytes());
  const std::string path = std::getenv("PATH");
  setenv("PATH", (root_.string() + ':' + path).c_str(), 1);
  EXPECT_NE(blind_reason(write("one", "#!/usr/bin/env kshim-interpreter\n")).find("statically"),
            std::string::npos);
  EXPECT_NE(blind_reason(write("two", "#!/usr/bin/env -S kshim-interpreter -x\n")).find("statically"),
            std::string::npos);
  setenv("PATH", path.c_str(), 1);
}

TEST_F(ElfFile, ScriptsThatNameEachOtherEnd) {
  write("a", "#!" + (root_ / "b").string() + "\n");
  write("b", "#!" + (root_ / "a").string() + "\n");
  EXPECT_EQ(blind_reason(root_ / "a"), "");
}

TEST_F(ElfFile, SanitizerRuntimesAreSeen) {
  EXPECT_TRUE(wants_asan(write("gcc", Elf("/lib64/ld.so", {"libc.so.6", "libasan.so.8"}).bytes())));
  EXPECT_TRUE(wants_asan(write("clang", Elf("/lib64/ld.so", {"libclang_rt.asan-x86_64.so"}).bytes())));
  EXPECT_FALSE(wants_asan(write("none", Elf("/lib64/ld.so", {"libc.so.6"}).bytes())));
}

TEST_F(ElfFile, WhatIsNotThereIsNotJudged) {
  EXPECT_FALSE(inspect(root_ / "nowhere").has_value());
  EXPECT_FALSE(inspect(root_).has_value());
  EXPECT_EQ(blind_reason(root_ / "nowhere"), "");
  EXPECT_FALSE(must_not_preload(root_ / "nowhere"));
  EXPECT_EQ(blind_reason(write("empty", "")), "");
  EXPECT_EQ(blind_reason(write("text", "hello, this is text")), "");
}

TEST_F(ElfFile, EveryTornProgramIsReadWithoutAWord) {
  const std::string whole = Elf("/lib64/ld.so", {"libc.so.6", "libasan.so.8"}).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const fs::path path = write("torn", std::string_view(whole).substr(0, size));
    const auto executable = inspect(path);
    EXPECT_EQ(executable.has_value(), size >= 4) << size;
    EXPECT_FALSE(must_not_preload(path)) << size;
    if (size < sizeof(Elf64_Ehdr) + Elf::kPrograms * sizeof(Elf64_Phdr)) {
      EXPECT_EQ(blind_reason(path), "") << size << ": static, it would say, of what no kernel runs";
    }
  }
}

TEST_F(ElfFile, NumbersThatLieAreSurvived) {
  const std::string whole = Elf("/lib64/ld.so", {"libc.so.6", "libasan.so.8"}).bytes();
  for (std::size_t at = SELFMAG; at < whole.size(); ++at) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bytes = whole;
      bytes[at] = value;
      const fs::path path = write("lies", bytes);
      ASSERT_TRUE(inspect(path).has_value()) << at;
      blind_reason(path);
      wants_asan(path);
    }
  }
  Elf far;
  far.header.e_phoff = UINT64_MAX - 8;
  EXPECT_FALSE(wants_asan(write("far", far.bytes())));
  Elf huge("/lib64/ld.so", {"libasan.so.8"});
  for (Elf64_Phdr& program : huge.programs) program.p_filesz = UINT64_MAX;
  EXPECT_FALSE(wants_asan(write("huge", huge.bytes())));
}

}  // namespace
}  // namespace kshim::test

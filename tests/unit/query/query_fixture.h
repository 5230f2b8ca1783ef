// SPDX-License-Identifier: Apache-2.0
// Files made by the test, and the library asked about them.
#pragma once
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cubin_builder.h"
#include "fatbin_builder.h"
#include "kshim/query.h"

namespace kshim::test {

struct Asked {
  int code = 0;
  std::string reason;
  kshim_answer answer{};
};

inline Asked ask(const std::string& path, unsigned number, const char* kernel = nullptr, int driver = 0,
                 std::uint32_t flags = 0) {
  const kshim_question question{
      sizeof(kshim_question),        path.c_str(), kernel, static_cast<int>(number / 10),
      static_cast<int>(number % 10), driver,       flags};
  Asked out;
  out.answer.size = sizeof out.answer;
  out.code = kshim_query(&question, &out.answer);
  EXPECT_EQ(out.code, out.answer.code);
  EXPECT_NE(out.answer.reason, nullptr);
  EXPECT_NE(out.answer.text, nullptr);
  out.reason = out.answer.reason;
  return out;
}

inline Buffer cubin_of(unsigned number, std::initializer_list<const char*> kernels,
                       image::Suffix suffix = image::Suffix::none) {
  CubinSpec spec{.arch = arch_of(number, suffix)};
  for (const char* kernel : kernels) spec.kernels.push_back({.name = kernel});
  return build_cubin(spec);
}
inline std::string ptx_of(unsigned number, std::initializer_list<const char*> kernels,
                          const char* isa = "8.0") {
  std::string out =
      ".version " + std::string(isa) + "\n.target sm_" + std::to_string(number) + "\n.address_size 64\n";
  for (const char* kernel : kernels) out += ".visible .entry " + std::string(kernel) + "()\n{\nret;\n}\n";
  return out;
}

class Query : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory where there is such a file system: some tests write thousands of files.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string name = (memory ? "/dev/shm/" : ::testing::TempDir()) + "kshim-query-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, Bytes bytes) const {
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path(name);
  }
  std::string write(const std::string& name, const FatbinBuilder& fatbin) const {
    return write(name, Bytes(fatbin.build()));
  }
  /// As if it had been written long ago, so that it is kept in the cache.
  static void age(const std::string& path) {
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  }

  std::filesystem::path folder_;
};

inline constexpr std::uint64_t kLoaded = SHF_ALLOC;
inline ElfBuilder host_elf() {
  ElfBuilder elf;
  elf.machine = EM_X86_64;
  elf.os_abi = 0;
  elf.abi_version = 0;
  return elf;
}
/// A program with these fatbins, one module each.
inline Buffer host_of(const std::vector<FatbinBuilder>& fatbins) {
  Buffer section;
  for (const FatbinBuilder& fatbin : fatbins) {
    pad_to(section, 8);
    append(section, Bytes(fatbin.build()));
  }
  ElfBuilder elf = host_elf();
  elf.section(".rodata", SHT_PROGBITS, Buffer(4096), 0, 0, kLoaded, 0x1000);
  elf.section(".nv_fatbin", SHT_PROGBITS, section, 0, 0, kLoaded, 0x4000);
  return elf.build();
}

}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
// Files with kernels in their device code, for the tests of ObjectFile.
#pragma once
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/device_code/object_file.h"
#include "device_code_fixture.h"
#include "report_text.h"
#include "tests/support/command_names.h"

namespace kshim::test {

inline constexpr std::string_view kBuildIdHex = "61626364";

inline Buffer cubin(unsigned arch, const std::vector<std::string>& kernels, const std::string& release = "") {
  CubinSpec spec;
  spec.arch = arch_of(arch);
  for (const std::string& name : kernels) spec.kernels.push_back({.name = name});
  if (!release.empty())
    spec.command_line = "Cuda compilation tools, release " + release + ", V" + release + ".88";
  return build_cubin(spec);
}

inline std::string ptx(unsigned arch, const std::string& kernel) {
  return fmt::format(".version 9.0\n.target sm_{}\n.address_size 64\n.visible .entry {}()\n{{\n ret;\n}}\n",
                     arch, kernel);
}

inline std::string_view text_of_buffer(const Buffer& bytes) { return text_of(Bytes(bytes)); }

/// A host file whose build id is these bytes.
inline ElfBuilder host(std::string_view build_id = "abcd") {
  Buffer note;
  append(note, 4U);
  append(note, static_cast<std::uint32_t>(build_id.size()));
  append(note, 3U);
  append(note, std::string_view("GNU\0", 4));
  append(note, build_id);
  pad_to(note, 4);
  auto elf = host_elf();
  elf.section(".note.gnu.build-id", SHT_NOTE, note, 0, 0, kLoaded, 0x1000);
  return elf;
}

class ObjectFileTest : public ::testing::Test {
 protected:
  ObjectFile open(const Buffer& bytes, std::string_view build_id = kBuildIdHex,
                  const std::string& name = "program") {
    auto got = ObjectFile::open(folder_.write(name, text_of_buffer(bytes)).string(), build_id);
    if (const auto* why = std::get_if<std::string>(&got)) throw std::runtime_error(*why);
    return std::get<ObjectFile>(std::move(got));
  }
  std::string refusal(std::string_view bytes, std::string_view build_id) {
    auto got = ObjectFile::open(folder_.write("file", bytes).string(), build_id);
    const auto* why = std::get_if<std::string>(&got);
    return why != nullptr ? *why : "opened";
  }
  TemporaryFolder folder_;
};

}  // namespace kshim::test

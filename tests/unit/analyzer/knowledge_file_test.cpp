// SPDX-License-Identifier: Apache-2.0
// GPUs by name, and tables from a file: what is taken, what is refused, and that nothing has changed where it
// is. The tests change the tables of their process: ctest gives each its own.
#include "analyzer/data/knowledge_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "analyzer/data/gpu_names.h"
#include "kshim/image/compute_capability.h"
#include "kshim/image/select.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGpu[] =
    R"({"cc": "14.0", "generation": "Foo", "chips": "", "tegra": false, "first_toolkit": "14.0",
  "last_toolkit": null, "last_driver_branch": null, "products": [], "names": ["RTX 6090"], "first_isa": {"base": "9.9"},
  "family": ["14.0"], "limits": {}, "simulated": [], "basis": "declared", "sources": "x"})";
constexpr char kToolkits[] = R"({"cuda": "14.0", "isa": "9.9", "driver": "650.10", "minor_driver": null,
  "windows_driver": null, "windows_minor_driver": null, "default": 140, "targets": "140", "tile_targets": "",
  "basis": "declared", "sources": "x"})";

std::string file_of(const std::string& tables, const std::string& date = "2030-01-01") {
  return R"({"schema": "kshim-knowledge/1", "date": ")" + date + "\"" + tables + "}";
}

std::string refusal(const std::string& text) {
  try {
    replace_knowledge(text, "t.json");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "accepted";
}

class KnowledgeFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "kshim_knowledge_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directories(folder_ + "/kshim");
    ::setenv("XDG_DATA_HOME", folder_.c_str(), 1);
    ::unsetenv("KSHIM_KNOWLEDGE");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    const std::string path = folder_ + "/kshim/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string folder_;
};

TEST(GpuNames, AreThoseThatPeopleUse) {
  const auto cc = [](std::string_view name) {
    return std::string(image::to_name(choose_gpu(name).cc).view());
  };
  for (const char* name :
       {"RTX 5090", "rtx5090", "NVIDIA GeForce RTX 5090", "GeForce RTX 5090", "5090", "rtx-5090"})
    EXPECT_EQ(cc(name), "12.0") << name;
  EXPECT_EQ(cc("H100"), "9.0");
  EXPECT_EQ(cc("GTX 1080"), "6.1");
  EXPECT_EQ(cc("1080"), "6.1");
  EXPECT_EQ(cc("DGX Spark"), "12.1");
  EXPECT_EQ(cc("RTX Spark"), "12.1");
  EXPECT_EQ(cc("Jetson Thor"), "11.0");
  EXPECT_EQ(cc("thor"), "11.0");
  EXPECT_EQ(cc("Jetson Nano"), "5.3");
  EXPECT_EQ(cc("Tesla V100"), "7.0");
  EXPECT_EQ(cc("sm_90a"), "9.0");
  EXPECT_EQ(cc("8.6"), "8.6");
  EXPECT_EQ(choose_gpu("rtx 5090").name, "RTX 5090");
  EXPECT_EQ(choose_gpu("8.6").name, "");
}

TEST(GpuNames, AmbiguousOrUnknownNamesAreReported) {
  const auto refused = [](std::string_view name) {
    try {
      choose_gpu(name);
    } catch (const UnknownGpu& error) {
      return std::string(error.what());
    }
    return std::string("found");
  };
  const std::string several = refused("RTX 4000");
  for (const char* part : {"Quadro RTX 4000 (7.5)", "RTX 4000 Ada (8.9)", "(12.0)"})
    EXPECT_THAT(several, HasSubstr(part));
  EXPECT_THAT(refused("TITAN X"), HasSubstr("GTX TITAN X (5.2)"));
  EXPECT_THAT(refused("RTX 5091"), HasSubstr("RTX 5090"));
  EXPECT_THAT(refused("toaster"), HasSubstr("--list-gpus"));
  EXPECT_THAT(refused("12"), HasSubstr("12.0"));
  EXPECT_THAT(refused("13"), Not(HasSubstr("13.0")));
  EXPECT_THAT(refused("10.9"), HasSubstr(fmt::format("3.0 to {}", image::to_name(gpus().back().cc).view())));
  EXPECT_THAT(refused(""), HasSubstr("--list-gpus"));
  EXPECT_EQ(refused("\x1b[31mx").find('\x1b'), std::string::npos);
}

TEST_F(KnowledgeFile, IsRefusedWithItsPlaceAndChangesNothing) {
  const std::size_t wheels_before = wheels().size();
  const std::string wheel =
      R"({"distribution": "p", "first": "1", "last": "2", "variant": "", "platform": "linux x86_64",
    "cubin": "75", "ptx": "", "basis": "measured", "sources": "x")";
  EXPECT_THAT(refusal("{"), HasSubstr("t.json: "));
  EXPECT_THAT(refusal("{}"), HasSubstr("kshim-knowledge/1"));
  EXPECT_THAT(refusal(R"({"schema": "kshim-knowledge/2", "date": "2030-01-01"})"),
              HasSubstr("kshim-knowledge/1"));
  EXPECT_THAT(refusal(file_of("", "tomorrow")), HasSubstr("date"));
  EXPECT_THAT(refusal(file_of(R"(, "wheel": [])")), HasSubstr("wheel"));
  EXPECT_THAT(refusal(file_of(R"(, "wheels": [])")), HasSubstr("wheels"));
  EXPECT_THAT(refusal(file_of(R"(, "wheels": [)" + wheel + "}, 7]")), HasSubstr("row 2 of `wheels`"));
  EXPECT_THAT(refusal(file_of(R"(, "wheels": [)" + wheel + R"(, "real": "80"}])")), HasSubstr("`real`"));
  EXPECT_THAT(refusal(file_of(R"(, "wheels": [{"distribution": "p"}])")), HasSubstr("`first` is missing"));
  std::string bad = wheel;
  bad.replace(bad.find("\"75\""), 4, "\"sm75x\"");
  EXPECT_THAT(refusal(file_of(R"(, "wheels": [)" + bad + "}]")), HasSubstr("sm75x"));
  EXPECT_THAT(refusal(file_of(std::string(R"(, "toolkits": [)") + kToolkits + "," + kToolkits + "]")),
              HasSubstr("not newer"));
  EXPECT_THAT(refusal(std::string(std::size_t{9} << 20, ' ')), HasSubstr("8 MiB"));
  EXPECT_EQ(wheels().size(), wheels_before);
  EXPECT_TRUE(knowledge_files().empty());
}

TEST_F(KnowledgeFile, UserFileIsUsedIfNewerAndNotWritableByOthers) {
  write("wheels.json",
        file_of(R"(, "sources": [{"id": "older", "what": "w", "date": "2000-01-01"}])", "2000-01-01"));
  EXPECT_TRUE(load_knowledge("").empty());
  EXPECT_TRUE(knowledge_files().empty()) << "older than the built-in tables";
  write("wheels.json", file_of(R"(, "sources": [{"id": "newer", "what": "w", "date": "2030-01-01"}])"), 0666);
  EXPECT_EQ(load_knowledge("").size(), 1U);
  EXPECT_TRUE(knowledge_files().empty()) << "writable by everybody";
  write("wheels.json", "{");
  EXPECT_EQ(load_knowledge("").size(), 1U) << "passed over with a warning";
  write("wheels.json", "");
  std::filesystem::remove(folder_ + "/kshim/wheels.json");
  const std::string path =
      write("sources.json", file_of(R"(, "sources": [{"id": "newer", "what": "w", "date": "2030-01-01"}])"));
  EXPECT_TRUE(load_knowledge("").empty());
  EXPECT_EQ(sources().size(), 1U);
  EXPECT_EQ(knowledge_files().back(), path);
  EXPECT_EQ(knowledge_date(), "2030-01-01");
}

TEST_F(KnowledgeFile, ThatWasNamedMustBeThere) {
  EXPECT_THROW(load_knowledge(folder_ + "/none.json"), std::runtime_error);
  EXPECT_THROW(load_knowledge(folder_ + "/kshim"), std::runtime_error) << "an empty folder";
  ::setenv("KSHIM_KNOWLEDGE", (folder_ + "/none.json").c_str(), 1);
  EXPECT_THROW(load_knowledge(""), std::runtime_error);
  // One that was named is taken whatever its date.
  const std::string path = write(
      "old.json", file_of(R"(, "sources": [{"id": "a", "what": "w", "date": "2001-01-01"}])", "2001-01-01"));
  EXPECT_NO_THROW(load_knowledge(path));
  EXPECT_EQ(sources().front().id, "a");
}

TEST_F(KnowledgeFile, ANewGpuIsJudgedAsImagesAre) {
  replace_knowledge(file_of(std::string(R"(, "gpus": [)") + kGpu + R"(], "toolkits": [)" + kToolkits + "]"),
                    "new.json");
  EXPECT_EQ(choose_gpu("rtx 6090").cc, (image::ComputeCapability{14, 0}));
  EXPECT_EQ(first_toolkit_for({{14, 0}, {}})->driver, "650.10");
  ASSERT_NE(image::find_compute_capability({14, 0}), nullptr);
  EXPECT_EQ(image::first_isa_of({{14, 0}, image::Suffix::none}), (image::Version{9, 9}));
  EXPECT_EQ(image::ptx_isa_of_cuda({14, 0}), (image::Version{9, 9}));
  const image::Candidate ptx{image::ImageKind::ptx, {{14, 0}, image::Suffix::none}, {9, 8}};
  EXPECT_EQ(image::select_image({&ptx, 1}, {{14, 0}, {14, 0}, {}}).error, 218)
      << "its PTX ISA did not know the target yet";
}

}  // namespace
}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
// Whose the failing file is, and which file it is at all.
#include <gmock/gmock.h>
#include <sys/utsname.h>

#include "analyze_fixture.h"
#include "object_file_fixture.h"

namespace kshim::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::string_view kReported = "\xab\x12";  // the build id that ReportText gives its objects

class Attribution : public Analyze {
 protected:
  void SetUp() override { options_.root = machine_.path(); }
  /// A file with code for sm_75.
  static std::string library(std::string_view build_id) {
    auto elf = host(build_id);
    elf.section(".nv_fatbin", SHT_PROGBITS, FatbinBuilder().cubin(arch_of(75), cubin(75, {kSaxpy})).build(),
                0, 0, kLoaded, kFatbinAddress);
    const auto bytes = elf.build();
    return std::string(text_of_buffer(bytes));
  }
  std::string write(const std::string& file, std::string_view build_id = kReported) {
    return machine_.write(file, library(build_id)).string();
  }
  static std::string here() {
    utsname system{};
    uname(&system);
    return system.nodename;
  }
  /// A kernel of the file failed, on the machine of that name.
  Finding failed(const std::string& path, std::string_view host = "box", std::string_view also = "") {
    ReportText text;
    text.process("", 17, 1, "/home/u/train", host).driver().device(0, "8.6");
    text.record(
        "object",
        fmt::format(R"("id":1,"path":"{}","build_id":"ab12","runtime":"static","fatbins":null,"images":null)",
                    path));
    if (!also.empty()) text.raw(also);
    text.record(
        "module",
        fmt::format(R"("id":1,"object":1,"offset":{},"api":"cuLibraryLoadData","result":0,"device":0)",
                    kFatbinAddress));
    text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
    const Analysis got = run(text.end());
    return got.findings.empty() ? Finding() : got.findings.front();
  }
  static std::string text_of(const Finding& finding) {
    std::string out;
    for (const Evidence& row : finding.evidence) out += row.text + "\n";
    return out;
  }
  TemporaryFolder machine_;
  const std::string site_ = "venv/lib/python3.11/site-packages/";
};

TEST_F(Attribution, APackageIsFoundByItsRecordFile) {
  machine_.write(site_ + "foo_ext-1.2.dist-info/RECORD", "foo/_C.so,sha256=x,7\n");
  machine_.write(site_ + "foo_ext-1.2.dist-info/METADATA", "Name: foo-ext\nVersion: 1.2\n\n");
  const Finding got = failed(write(site_ + "foo/_C.so"));
  EXPECT_EQ(got.package.text(), "foo-ext 1.2 (pip)");
  ASSERT_FALSE(got.fixes.empty());
  EXPECT_THAT(got.fixes[0].title, HasSubstr(" foo-ext"));
}
TEST_F(Attribution, AnotherFileAtThePathIsNotTheRecordedOne) {
  machine_.write(site_ + "foo_ext-1.2.dist-info/RECORD", "foo/_C.so,sha256=x,7\n");
  const std::string path = write(site_ + "foo/_C.so", "\xcd\x34");
  const Finding elsewhere = failed(path, "another-machine");
  EXPECT_EQ(elsewhere.package.text(), "");
  EXPECT_THAT(elsewhere.have, IsEmpty());
  EXPECT_THAT(text_of(elsewhere), HasSubstr("its build id is cd34 now"));
  // Here it was this package's, of whatever version.
  const Finding changed = failed(path, here());
  EXPECT_EQ(changed.package.text(), "foo_ext (pip)");
  EXPECT_THAT(changed.have, IsEmpty());
}
TEST_F(Attribution, AFileThatIsGoneIsSaidToBe) {
  const Finding got = failed((machine_.path() / "gone.so").string(), here());
  EXPECT_EQ(got.package.text(), "");
  EXPECT_THAT(text_of(got), HasSubstr("gone.so is no longer there"));
}
TEST_F(Attribution, TheSameBuildIdAtAnotherPathIsTheSameFile) {
  const std::string copy = write("copy/libfoo.so");
  const std::string gone = (machine_.path() / "gone.so").string();
  const std::string record =
      fmt::format(
          R"({{"type":"library","seq":9,"t":9,"soname":"libfoo.so","path":"{}","version":null,"build_id":"ab12"}})",
          copy) +
      "\n";
  const Finding got = failed(gone, "box", record);
  EXPECT_THAT(got.have, Contains("sm_75"));
  EXPECT_EQ(got.object, gone);
  EXPECT_THAT(text_of(got),
              AllOf(HasSubstr("is no longer there: " + copy + ", which has the same build id, was read")));
}
TEST_F(Attribution, AnotherBuildIdAtTheOtherPathIsNot) {
  const std::string copy = write("copy/libfoo.so", "\xcd\x34");
  const std::string record =
      fmt::format(
          R"({{"type":"library","seq":9,"t":9,"soname":"libfoo.so","path":"{}","version":null,"build_id":"ab12"}})",
          copy) +
      "\n";
  const Finding got = failed((machine_.path() / "gone.so").string(), "box", record);
  EXPECT_THAT(got.have, IsEmpty());
  EXPECT_THAT(text_of(got), Not(HasSubstr("same build id")));
}
TEST_F(Attribution, ACondaPackageIsNamedWithBuildAndChannel) {
  machine_.write(
      "envs/ml/conda-meta/pytorch-2.5.1-cuda124.json",
      R"({"name":"pytorch","version":"2.5.1","build":"cuda124_0","channel":"conda-forge","files":["lib/libtorch_cuda.so"]})");
  const Finding got = failed(write("envs/ml/lib/libtorch_cuda.so"));
  EXPECT_EQ(got.package.text(), "pytorch 2.5.1 (conda)");
  EXPECT_THAT(text_of(got), HasSubstr("libtorch_cuda.so belongs to pytorch 2.5.1 (conda, build cuda124_0, "
                                      "channel conda-forge, environment ml)."));
}
TEST_F(Attribution, AVendoredCopyIsSaidToBeOne) {
  machine_.write(site_ + "faiss_gpu_cu12-1.13.2.dist-info/RECORD",
                 "faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so,,\n");
  machine_.write(site_ + "faiss_gpu_cu12-1.13.2.dist-info/METADATA",
                 "Name: faiss-gpu-cu12\nVersion: 1.13.2\n\n");
  const Finding got = failed(write(site_ + "faiss_gpu_cu12.libs/libfaiss-1a2b3c4d.so"));
  EXPECT_EQ(got.package.text(), "faiss-gpu-cu12 1.13.2 (pip)");
  EXPECT_THAT(text_of(got),
              HasSubstr("libfaiss-1a2b3c4d.so is a copy of libfaiss inside faiss-gpu-cu12 1.13.2 (pip)."));
}
TEST_F(Attribution, TwoPackagesWithOneFileAreBothNamed) {
  machine_.write(site_ + "onnxruntime-1.20.1.dist-info/RECORD", "onnxruntime/capi/state.so,,4\n");
  machine_.write(site_ + "onnxruntime_gpu-1.19.0.dist-info/RECORD",
                 fmt::format("onnxruntime/capi/state.so,,{}\n", library(kReported).size()));
  const Finding got = failed(write(site_ + "onnxruntime/capi/state.so"));
  EXPECT_EQ(got.package.text(), "onnxruntime_gpu 1.19.0 (pip)");
  EXPECT_THAT(text_of(got), HasSubstr("onnxruntime 1.20.1 lists the same file"));
}
TEST_F(Attribution, TheReportsOwnRecordWins) {
  const std::string record =
      R"({"type":"package","seq":9,"t":9,"object":1,"name":"torch","version":"2.9","manager":"conda","build":"b1","channel":"c"})"
      "\n";
  const Finding got = failed("/nowhere/libtorch_cuda.so", "box", record);
  EXPECT_EQ(got.package.text(), "torch 2.9 (conda)");
  EXPECT_THAT(text_of(got), HasSubstr("build b1, channel c"));
}
TEST_F(Attribution, AFixForACondaPackageIsCondasInItsEnvironment) {
  machine_.write(
      "envs/ml/conda-meta/foo-1-0.json",
      R"({"name":"foo","version":"1","channel":"nvidia","files":["lib/python3.11/site-packages/foo/_C.so"]})");
  const Finding got = failed(write("envs/ml/lib/python3.11/site-packages/foo/_C.so"));
  EXPECT_EQ(got.package.text(), "foo 1 (conda)");
  bool condas = false;
  for (const Fix& fix : got.fixes) {
    EXPECT_THAT(fix.commands, Each(Not(HasSubstr("pip ")))) << fix.title;
    for (const std::string& command : fix.commands)
      condas =
          condas || command == "conda update -p " + (machine_.path() / "envs/ml").string() + " -c nvidia foo";
  }
  EXPECT_TRUE(condas) << ::testing::PrintToString(got.fixes.empty() ? std::vector<std::string>()
                                                                    : got.fixes[0].commands);
}
TEST_F(Attribution, AnEditableInstallationIsBuiltAgainInItsFolder) {
  const std::string folder = (machine_.path() / "src/my ext").string();
  const std::string info = site_ + "my_ext-0.3.dist-info/";
  machine_.write(info + "RECORD", "__editable___my_ext_finder.py,,\n");
  machine_.write(info + "METADATA", "Name: my-ext\nVersion: 0.3\n\n");
  machine_.write(info + "direct_url.json",
                 fmt::format(R"({{"url":"file://{}","dir_info":{{"editable":true}}}})",
                             (machine_.path() / "src/my%20ext").string()));
  // Another file of the environment, by which kshim finds it.
  const std::string other = fmt::format(
      R"({{"type":"object","seq":9,"t":9,"id":9,"path":"{}","build_id":null,"runtime":"none","fatbins":1,"images":null}})"
      "\n",
      write(site_ + "other/_C.so"));
  const Finding got = failed(write("src/my ext/my_ext/_C.abi3.so"), "box", other);
  EXPECT_EQ(got.package.text(), "my-ext 0.3 (pip)");
  EXPECT_THAT(text_of(got),
              HasSubstr("_C.abi3.so belongs to my-ext 0.3 (pip, built from -e " + folder + ")."));
  ASSERT_FALSE(got.fixes.empty());
  EXPECT_THAT(got.fixes[0].title, HasSubstr("Rebuild with sm_86 added"));
  EXPECT_THAT(got.fixes[0].commands.at(0),
              EndsWith("pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps -e '" +
                       folder + "'"));
  EXPECT_THAT(got.fixes[0].caveat, AllOf(HasSubstr("delete it first"), Not(HasSubstr("run it in"))));
  for (const Fix& fix : got.fixes)
    EXPECT_THAT(fix.commands, Each(Not(HasSubstr("--no-binary")))) << fix.title;
}
TEST_F(Attribution, WhatPipBuiltOfARepositoryIsBuiltOfItAgain) {
  machine_.write(site_ + "foo_ext-1.2.dist-info/RECORD", "foo/_C.so,sha256=x,7\n");
  machine_.write(site_ + "foo_ext-1.2.dist-info/direct_url.json",
                 R"({"url":"https://h.org/o/foo","vcs_info":{"vcs":"git","commit_id":"0123"}})");
  const Finding got = failed(write(site_ + "foo/_C.so"));
  EXPECT_EQ(got.package.text(), "foo_ext 1.2 (pip)");
  ASSERT_FALSE(got.fixes.empty());
  EXPECT_THAT(got.fixes[0].commands.at(0), EndsWith(" git+https://h.org/o/foo@0123"));
}
TEST_F(Attribution, AReportsSourceIsInNoCommand) {
  const auto command = [&](const std::string& source) {
    const std::string record =
        R"({"type":"package","seq":9,"t":9,"object":1,"name":"foo","version":"1","manager":"pip","source":")" +
        source + "\"}\n";
    const Finding got = failed("/nowhere/site-packages/foo/_C.so", "box", record);
    for (const Fix& fix : got.fixes)
      if (!fix.commands.empty()) return fix.commands[0];
    return std::string();
  };
  for (const char* source : {"-e /src/foo", "/src/$(id)", "-r https://h.org/x"})
    EXPECT_THAT(command(source), EndsWith(" --no-deps .")) << "neither its source nor its name";
}
TEST_F(Attribution, WhatIsNoPackagesNameGetsIntoNoCommand) {
  for (const char* name :
       {"-rhttps://h.org/x", "--index-url=https://h.org", "foo bar", "https://h.org/x.whl", "../x"}) {
    const std::string record =
        fmt::format(
            R"({{"type":"package","seq":9,"t":9,"object":1,"name":"{}","version":"1","manager":"pip"}})",
            name) +
        "\n";
    const Finding got = failed("/nowhere/site-packages/foo/_C.so", "box", record);
    EXPECT_THAT(got.package.text(), HasSubstr(name));
    ASSERT_FALSE(got.fixes.empty());
    for (const Fix& fix : got.fixes) EXPECT_THAT(fix.commands, Each(Not(HasSubstr(name)))) << fix.title;
  }
}

}  // namespace
}  // namespace kshim::test

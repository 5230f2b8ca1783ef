// SPDX-License-Identifier: Apache-2.0
// CUDA libraries that meet in one process: what is told, as what, and what is by design.
#include "analyzer/diagnose/libraries.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "analyze_fixture.h"
#include "analyzer/advise/advice.h"
#include "analyzer/data/knowledge.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;

const char* kWheels = "/home/u/venv/lib/python3.11/site-packages/nvidia/";

class Mixed : public Analyze {
 protected:
  /// libraries: "soname folder version" each.
  static ReportText loaded(const std::vector<std::string>& libraries, std::string_view env = "") {
    ReportText text;
    text.process(env).driver().device(0, "9.0", "NVIDIA Test");
    for (const std::string& row : libraries) {
      const std::size_t one = row.find(' ');
      const std::size_t two = row.find(' ', one + 1);
      const std::string name = row.substr(0, one);
      const std::string version = two == std::string::npos ? "null" : json_text(row.substr(two + 1));
      const std::string folder = row.substr(one + 1, two == std::string::npos ? two : two - one - 1);
      text.record("library", fmt::format(R"("soname":"{}","path":"{}/{}","version":{},"build_id":"{:016x}")",
                                         name, folder, name, version, std::hash<std::string>{}(row)));
    }
    return text;
  }
  const Finding* find(const Analysis& analysis, Cause cause) {
    const auto found = std::find_if(analysis.findings.begin(), analysis.findings.end(),
                                    [&](const Finding& row) { return row.cause == cause; });
    return found == analysis.findings.end() ? nullptr : &*found;
  }
  /// Cause and severity of the only finding; "" for none.
  std::string told(const std::vector<std::string>& libraries) {
    const Analysis got = run(loaded(libraries).end());
    if (got.findings.empty()) return "";
    EXPECT_THAT(got.findings, SizeIs(1));
    return fmt::format("{} {} {:.2f}", row_of(got.findings[0].cause).name, to_name(got.findings[0].severity),
                       got.findings[0].confidence);
  }
};

TEST_F(Mixed, WhatIsByDesignIsSilent) {
  const std::string wheels = kWheels;
  // One environment, each library in a folder of its own.
  EXPECT_EQ(
      told({"libcudart.so.12 " + wheels + "cuda_runtime/lib 12",
            "libcublas.so.12 " + wheels + "cublas/lib 12", "libcublasLt.so.12 " + wheels + "cublas/lib 12",
            "libcudnn.so.9 " + wheels + "cudnn/lib 9", "libcudnn_ops.so.9 " + wheels + "cudnn/lib 9.10.2",
            "libcusparse.so.12 " + wheels + "cusparse/lib 12",
            "libnvJitLink.so.12 " + wheels + "nvjitlink/lib 12",
            "libcusolver.so.11 " + wheels + "cusolver/lib 11"}),
      "");
  // A wheel's renamed runtime beside another one.
  EXPECT_EQ(told({"libcudart.so.12 /usr/local/cuda/lib64", "libcudart-e409450e.so.11.0 /x/torch/lib",
                  "libcublas-1a2b3c4d.so.11 /x/torch/lib", "libcublas.so.12 /usr/local/cuda/lib64",
                  "libcublasLt.so.12 /usr/local/cuda/lib64"}),
            "");
  // Compilers keep nothing, and the driver's parts are the driver's.
  EXPECT_EQ(told({"libnvrtc.so.12 /a", "libnvrtc.so.12 /b", "libnvrtc.so.11.2 /c", "libnvJitLink.so.12 /d",
                  "libnvJitLink.so.13 /e", "libcuda.so.1 /usr/lib", "libcuda.so.1 /usr/lib/wsl",
                  "libnvidia-ml.so.1 /usr/lib"}),
            "");
  // From different places, and of one release all the same.
  EXPECT_EQ(told({"libcublas.so.12 /store/a 12.4.5.8", "libcublasLt.so.12 /store/b 12.4.5.8"}), "");
  // Used by another library out of another installation: nothing failed.
  EXPECT_EQ(told({"libcusolver.so.11 /usr/local/cuda/lib64", "libcublas.so.12 /home/u/lib",
                  "libcublasLt.so.12 /home/u/lib"}),
            "");
  // Two majors of cuBLAS that each have their own cuBLASLt would be told as majors, not as parts.
  EXPECT_EQ(told({"libcublas.so.11 /a 11.10", "libcublasLt.so.11 /a 11.10"}), "");
}

TEST_F(Mixed, WhatIsTold) {
  EXPECT_EQ(told({"libcublas.so.12 /a 12.1.3.1", "libcublasLt.so.12 /b 12.4.5.8"}),
            "mixed-cuda-libraries warning 0.90");
  EXPECT_EQ(told({"libcublas.so.12 /a 12", "libcublasLt.so.12 /b 12"}), "mixed-cuda-libraries warning 0.60");
  EXPECT_EQ(told({"libcudart.so.12 /a", "libcudart.so.12 /b"}), "mixed-cuda-libraries warning 0.60");
  EXPECT_EQ(told({"libcudart.so.11.0 /a", "libcudart.so.12 /b"}), "mixed-cuda-libraries warning 0.40");
  EXPECT_EQ(told({"libcudnn_graph.so.9 /a 9.10.2", "libcudnn_ops.so.9 /a 9.1.0"}),
            "cudnn-mismatch warning 0.90");
  EXPECT_EQ(told({"libcudnn.so.9 /a 9", "libcudnn_ops.so.9 /b 9"}), "cudnn-mismatch warning 0.60");
  EXPECT_EQ(told({"libcudnn.so.8 /a 8", "libcudnn.so.9 /b 9"}), "cudnn-mismatch warning 0.40");
  // One copy of the part is the one that the library came with.
  EXPECT_EQ(told({"libcublas.so.12 /a", "libcublasLt.so.12 /b", "libcublasLt.so.12 /a"}),
            "mixed-cuda-libraries warning 0.60");
}

// torch 1.12 and torchvision 0.13: the files have names of their own, and their soname is NVIDIA's.
TEST_F(Mixed, CopiesThatWheelsRenamed) {
  ReportText text;
  text.process().driver().device(0, "9.0");
  for (const char* name :
       {"torch/lib/libcudart-80664282.so.10.2", "torchvision.libs/libcudart.d9bbffd7.so.10.2"})
    text.record(
        "library",
        fmt::format(R"("soname":"libcudart.so.10.2","path":"/x/{0}","version":"10","build_id":"{1:016x}")",
                    name, std::hash<std::string>{}(name)));
  EXPECT_THAT(run(text.end()).findings, IsEmpty());
}

TEST_F(Mixed, CopiesOfOneBuildAreNoMatter) {
  ReportText text;
  text.process().driver().device(0, "9.0");
  for (const char* folder : {"/a", "/b"})
    text.record(
        "library",
        fmt::format(
            R"("soname":"libcudart.so.12","path":"{}/libcudart.so.12","version":"12","build_id":"ab")",
            folder));
  EXPECT_THAT(run(text.end()).findings, IsEmpty());
}

TEST_F(Mixed, ACudnnThatDroppedTheGpu) {
  ReportText text;
  text.process().driver().device(0, "6.1", "NVIDIA GeForce GTX 1080");
  text.record(
      "library",
      R"("soname":"libcudnn_graph.so.9","path":"/a/libcudnn_graph.so.9","version":"9.19.0","build_id":null)");
  seen_.ending.status = 1;
  const Analysis got = run(text.end());
  const Finding* found = find(got, Cause::cudnn_mismatch);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->severity, Severity::warning) << "the program may have given up for its own reasons";
  EXPECT_THAT(found->evidence[0].text, HasSubstr("cuDNN 9.10 was the last that did"));
  EXPECT_THAT(found->fixes, Contains(Field(&Fix::title, "Use cuDNN 9.10 or older")));
  seen_.ending.status = 0;
  EXPECT_EQ(find(run(text), Cause::cudnn_mismatch)->severity, Severity::warning);
}

TEST_F(Mixed, NoCudnnForThisCudaEverServedTheGpu) {
  Facts at;
  at.cause = Cause::cudnn_mismatch;
  at.gpu.cc = image::ComputeCapability{6, 1};
  CudaLibrary cudnn;
  cudnn.family = "cudnn";
  cudnn.version = "9.28.0.42";
  cudnn.cuda = 13;
  cudnn.package = "nvidia-cudnn-cu13";
  at.process.conflict.emplace().kind = LibraryConflictKind::dropped;
  at.process.conflict->libraries = {cudnn};
  const Advice advice = advise_on(at);
  ASSERT_THAT(advice.fixes, Not(IsEmpty()));
  const Fix& fix = advice.fixes.back();
  EXPECT_EQ(fix.id, "use-older-cuda-build");
  EXPECT_THAT(fix.commands, IsEmpty()) << "a package for another CUDA would overwrite the one that is there";
  EXPECT_THAT(fix.why, HasSubstr("CUDA 12.9 is the last"));
  at.process.conflict->libraries[0].cuda = 12;
  at.process.conflict->libraries[0].package = "nvidia-cudnn-cu12";
  EXPECT_EQ(advise_on(at).fixes.back().title, "Use cuDNN 9.10 or older");
  // What PyTorch lacks itself, no cuDNN beside it makes good.
  at.process.python_env.installed = {{"torch", "2.15.0+cu130"}};
  EXPECT_THAT(advise_on(at).fixes.front().arguments, Contains(::testing::Pair("package", "torch")));
  at.gpu.cc = image::ComputeCapability{7, 5};
  EXPECT_THAT(advise_on(at).fixes.front().arguments, Not(Contains(::testing::Pair("package", "torch"))));
}

TEST_F(Mixed, ACudnnOfAnotherMajorIsNoneForTheProgramThatLoadsIt) {
  Facts at;
  at.cause = Cause::cudnn_mismatch;
  CudaLibrary cudnn;
  cudnn.family = "cudnn";
  cudnn.version = "8.9.7.29";
  cudnn.major = 8;
  cudnn.cuda = 12;
  cudnn.package = "nvidia-cudnn-cu12";
  at.process.conflict.emplace().kind = LibraryConflictKind::dropped;
  at.process.conflict->libraries = {cudnn};
  at.gpu.cc = image::ComputeCapability{12, 0};
  const Advice other = advise_on(at);
  ASSERT_THAT(other.fixes, SizeIs(1));
  EXPECT_EQ(other.fixes[0].id, "use-other-cudnn");
  EXPECT_THAT(other.fixes[0].commands, IsEmpty());
  at.process.conflict->libraries[0].version = "9.1.0.70";
  at.process.conflict->libraries[0].major = 9;
  EXPECT_THAT(advise_on(at).fixes[0].commands, SizeIs(1));
}

TEST_F(Mixed, AFailureOutOfTheLibraryIsItsOwn) {
  ReportText text = loaded({"libcublas.so.12 /a 12.1.3.1", "libcublasLt.so.12 /b 12.4.5.8"});
  text.record(
      "failure",
      R"("id":1,"stage":"launch","layers":[{"layer":"driver","api":"cuLaunchKernel","code":400,"name":null}],)"
      R"("device":0,"kernel":null,"module":null,"object":null,"tid":5,)"
      R"("native":[{"object":"/b/libcublasLt.so.12","build_id":null,"offset":64,"symbol":null}],"python":null,"python_main":null)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1)) << "the code by itself says nothing that this does not";
  EXPECT_EQ(got.findings[0].cause, Cause::mixed_cuda_libraries);
  EXPECT_EQ(got.findings[0].severity, Severity::error);
  EXPECT_EQ(got.findings[0].code, 400);
  EXPECT_EQ(got.findings[0].failed_call, "cuLaunchKernel");
  EXPECT_EQ(got.verdict, Verdict::failure);
}

TEST_F(Mixed, AFailureElsewhereStaysBesideIt) {
  ReportText text = loaded({"libcudart.so.11.0 /a", "libcudart.so.12 /b"});
  text.object(1, "/home/u/libfoo.so", {"sm_90"}).module(1, "1");
  text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
  text.failure(2, "other", 999, "", R"("module":null,"object":null)");
  const Analysis got = run(text.end());
  const Finding* mixed = find(got, Cause::mixed_cuda_libraries);
  ASSERT_NE(mixed, nullptr);
  EXPECT_EQ(mixed->severity, Severity::warning) << "two runtimes do not give a 999";
}

TEST_F(Mixed, WhatIsExplainedOtherwiseIsNotTheirs) {
  ReportText text = loaded({"libcublas.so.12 /a 12.1.3.1", "libcublasLt.so.12 /b 12.4.5.8"});
  text.object(1, "/home/u/libfoo.so", {"sm_80"}).module(1, "1");
  text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
  seen_.ending.status = 1;
  const Analysis got = run(text.end());
  EXPECT_EQ(got.findings[0].cause, Cause::no_image_for_arch);
  EXPECT_EQ(find(got, Cause::mixed_cuda_libraries)->severity, Severity::warning);
}

TEST_F(Mixed, WhatTheProgramGaveUpOver) {
  seen_.ending.status = 1;
  const Analysis got =
      run(loaded({"libcudnn_graph.so.9 /usr/local/cuda/lib64 9.19.0", "libcudnn_ops.so.9 /opt/other 9.1.0"},
                 R"("LD_LIBRARY_PATH":"/opt/other:/opt/tools")")
              .end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].severity, Severity::warning) << "nothing is accused by a status alone";
  EXPECT_GT(got.findings[0].confidence, 0.7);
  EXPECT_THAT(got.findings[0].fixes[0].commands, ElementsAre("export LD_LIBRARY_PATH=/opt/tools"));
  EXPECT_THAT(got.findings[0].dead_ends, Contains(Field(&DeadEnd::action, "updating the driver")));
}

// torch.compile on Pascal: no call fails, Triton raises an exception.
TEST_F(Mixed, TritonRefusesAnOldGpuByItself) {
  const auto refusal_on = [&](const char* capability, int status) {
    ReportText text;
    text.process("").driver().device(0, capability, "NVIDIA Test");
    text.record("library",
                R"("soname":"libtriton.so","path":"/v/site-packages/triton/_C/libtriton.so","version":null)");
    seen_.ending.status = status;
    const Analysis got = run(text.end());
    return got.findings.empty() ? Finding{} : got.findings.front();
  };
  const Finding found = refusal_on("6.1", 1);
  EXPECT_EQ(found.cause, Cause::library_refuses);
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_THAT(found.object, HasSubstr("libtriton.so"));
  ASSERT_FALSE(found.fixes.empty());
  EXPECT_THAT(found.fixes.front().commands, Contains(HasSubstr("TORCHDYNAMO_DISABLE=1")));
  EXPECT_NE(refusal_on("7.0", 1).cause, Cause::library_refuses);
  EXPECT_NE(refusal_on("6.1", 0).cause, Cause::library_refuses);
}

TEST_F(Mixed, HostileNamesAreJustNames) {
  const Analysis got = run(loaded({"lib.so. /a 1", ".so /b", "libcublas.so.99999999999999999999 /c ..",
                                   "libcudnn.so.9 / 9.9.9.9.9.9", "libcublas-.so.12 relative",
                                   "libcublas.so.12 relative/../../.. -1"})
                               .end());
  EXPECT_EQ(got.processes.size(), 1U);
}

TEST(Releases, DifferWhereBothSaySo) {
  EXPECT_TRUE(releases_differ("12.4.5.8", "12.1.3"));
  EXPECT_FALSE(releases_differ("12", "12.1.3"));
  EXPECT_FALSE(releases_differ("", "12.1.3"));
  EXPECT_TRUE(releases_agree("9.19.0", "9.19.0.56"));
  EXPECT_FALSE(releases_agree("12", "12.4.5.8"));
}

TEST(LibraryHabits, TheDriverIsNotTheRuntime) {
  EXPECT_TRUE(is_stateless_library("cuda"));
  EXPECT_FALSE(is_stateless_library("cudart"));
  EXPECT_TRUE(is_stateless_library("nvrtc-builtins"));
}

}  // namespace
}  // namespace kshim::test

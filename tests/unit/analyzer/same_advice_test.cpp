// SPDX-License-Identifier: Apache-2.0
// One environment, asked about in three ways: a run of a program in it, its files, and the log of the run.
// The fix is the same.
#include <gtest/gtest.h>

#include <sstream>

#include "analyze_fixture.h"
#include "analyzer/verbs/explain.h"
#include "analyzer/verbs/scan.h"
#include "object_file_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

struct Environment {
  const char* release;  ///< of PyTorch
  unsigned built_for;   ///< architecture of the file
  const char* gpu;
  const char* name;  ///< of the GPU
};

class SameAdvice : public ::testing::TestWithParam<Environment> {
 protected:
  void SetUp() override {
    const std::string site = "env/lib/python3.11/site-packages/";
    const unsigned sm = GetParam().built_for;
    auto elf = host();
    elf.section(".nv_fatbin", SHT_PROGBITS,
                FatbinBuilder().cubin(arch_of(sm), cubin(sm, {kSaxpy}, "12.6")).build(), 0, 0, kLoaded,
                kFatbinAddress);
    file_ = folder_.write(site + "torch/lib/libtorch_cuda.so", text_of_buffer(elf.build())).string();
    const std::string info = site + "torch-" + GetParam().release + ".dist-info/";
    folder_.write(info + "METADATA",
                  std::string("Metadata-Version: 2.1\nName: torch\nVersion: ") + GetParam().release + "\n");
    folder_.write(info + "INSTALLER", "pip\n");
    folder_.write(info + "RECORD", "torch/lib/libtorch_cuda.so,,\n");
    folder_.write("env/pyvenv.cfg", "home = /usr/bin\n");
    folder_.write(site + "pip/__init__.py", "");
  }

  Finding of_run() const {
    ReportText text;
    text.process().driver("13.0").device(0, GetParam().gpu, GetParam().name);
    text.record(
        "object",
        fmt::format(R"("id":1,"path":"{}","build_id":"{}","runtime":"shared","fatbins":1,"images":null)",
                    file_, kBuildIdHex));
    text.record(
        "module",
        fmt::format(
            R"("id":1,"object":1,"offset":{},"content_hash":null,"size":100,"api":"cuLibraryLoadData",)"
            R"("result":209,"selected":null,"jit":null,"ms":1,"device":0)",
            kFatbinAddress));
    text.failure(1, "launch", 209, kSaxpy, R"("module":1,"object":1)", "cuLaunchKernel").end();
    const TemporaryFolder reports;
    reports.write("box.17.jsonl", text.text());
    return only(analyze({reports.path()}, {}).findings);
  }
  Finding of_files() const {
    ScanRequest options;
    const image::ComputeCapability cc = image::parse_arch(GetParam().gpu).value_or(image::Arch{}).cc;
    options.targets = {{cc, image::Suffix::none}};
    options.driver = {13, 0};
    return only(scan({folder_.path() / "env"}, options).findings);
  }
  Finding of_log() const {
    std::istringstream log(
        fmt::format("PyTorch version: {}\nGPU 0: {}, compute capability {}\nCUDA Driver Version: 13.0\n"
                    "  File \"{}\", line 9, in main\n"
                    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
                    GetParam().release, GetParam().name, GetParam().gpu, "/home/u/train.py"));
    return only(explain_log(log, "a.log", {}, {}).findings);
  }

 private:
  static Finding only(const std::vector<Finding>& findings) {
    EXPECT_EQ(findings.size(), 1U);
    return findings.empty() ? Finding{} : findings.front();
  }
  TemporaryFolder folder_;
  std::string file_;
};

TEST_P(SameAdvice, IsGivenByRunScanAndExplain) {
  const Finding run = of_run();
  const Finding files = of_files();
  const Finding log = of_log();
  ASSERT_FALSE(run.fixes.empty());
  ASSERT_FALSE(files.fixes.empty());
  ASSERT_FALSE(log.fixes.empty());
  EXPECT_EQ(run.cause, files.cause);
  EXPECT_EQ(run.cause, log.cause);
  EXPECT_EQ(run.fixes[0].id, files.fixes[0].id);
  EXPECT_EQ(run.fixes[0].id, log.fixes[0].id);
  EXPECT_FALSE(run.fixes[0].arguments.empty());
  EXPECT_EQ(run.fixes[0].arguments, files.fixes[0].arguments);
  EXPECT_EQ(run.fixes[0].arguments, log.fixes[0].arguments);
  EXPECT_EQ(run.fixes[0].commands, files.fixes[0].commands) << "both know the environment";
}

INSTANTIATE_TEST_SUITE_P(Environments, SameAdvice,
                         ::testing::Values(Environment{"2.7.1+cu126", 90, "12.0", "NVIDIA GeForce RTX 5090"},
                                           Environment{"2.9.1+cu128", 90, "6.1", "NVIDIA GeForce GTX 1080"},
                                           Environment{"2.4.1+cu121", 90, "12.0",
                                                       "NVIDIA GeForce RTX 5090"}));

}  // namespace
}  // namespace kshim::test

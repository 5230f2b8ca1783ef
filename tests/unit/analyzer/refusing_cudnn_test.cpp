// SPDX-License-Identifier: Apache-2.0
// cuDNN looks up a kernel of its own and fails: the release explains it, and the failed look-up makes it
// sure.
#include <gtest/gtest.h>

#include "analyze_fixture.h"
#include "object_file_fixture.h"

namespace {

using namespace kshim::test;

constexpr std::uint64_t kFatbins = 0x4000;

TEST(RefusingCudnn, AFailedLookUpOfItsOwn) {
  TemporaryFolder folder;
  Buffer fatbins;
  append(fatbins, kshim::Bytes(FatbinBuilder().cubin(arch_of(61), cubin(61, {"_Z6helperv"})).build()));
  const std::uint64_t second = kFatbins + fatbins.size();
  append(fatbins, kshim::Bytes(FatbinBuilder().cubin(arch_of(75), cubin(75, {"_Z4convv"})).build()));
  ElfBuilder elf = host();
  elf.section(".nv_fatbin", SHT_PROGBITS, fatbins, 0, 0, SHF_ALLOC, kFatbins);
  const std::string engines =
      folder.write("libcudnn_engines_precompiled.so.9", text_of_buffer(elf.build())).string();
  for (const int status : {0, 1}) {
    ReportText text;
    text.process().driver("13.0").device(0, "6.1", "NVIDIA GeForce GTX 1080");
    for (const std::string& path : {std::string("/opt/cudnn/libcudnn_graph.so.9"), engines})
      text.record("library", fmt::format(R"("soname":"{}","path":"{}","version":"9.28.0","build_id":{})",
                                         path.substr(path.rfind('/') + 1), path,
                                         path == engines ? fmt::format("\"{}\"", kBuildIdHex) : "null"));
    text.record("object", fmt::format(R"("id":1,"path":"{}","build_id":"{}","runtime":"static")", engines,
                                      kBuildIdHex));
    text.record(
        "module",
        fmt::format(R"("id":1,"object":1,"offset":{},"content_hash":null,"size":4096,)"
                    R"("api":"cuLibraryLoadData","result":0,"selected":null,"jit":null,"ms":0.1,"device":0)",
                    second));
    text.failure(
        1, "lookup", 209, "",
        fmt::format(
            R"("module":1,"object":1,"native":[{{"object":"{}","build_id":"{}","offset":64,"symbol":null}}])",
            engines, kBuildIdHex),
        "cuLibraryGetModule");
    text.record("end", R"("time":"2026-11-21T09:00:01Z","failures":1,"modules":1,"dropped":0)");
    text.record("exit", fmt::format(R"("status":{},"signal":null)", status));
    TemporaryFolder reports;
    reports.write("box.1.jsonl", text.text());
    const auto analysis = kshim::verbs::analyze({reports.path()}, {});
    const auto found = std::ranges::find(analysis.findings, Cause::cudnn_mismatch, &Finding::cause);
    ASSERT_NE(found, analysis.findings.end());
    EXPECT_EQ(found->severity, status != 0 ? Severity::error : Severity::warning);
    EXPECT_EQ(found->failed_call, "cuLibraryGetModule");
    EXPECT_EQ(found->code, 209);
    EXPECT_EQ(analysis.verdict, status != 0 ? Verdict::failure : Verdict::idle);
  }
}

}  // namespace

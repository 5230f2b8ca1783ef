// SPDX-License-Identifier: Apache-2.0
// Many reports, odd reports, and what the whole comes to.
#include <gmock/gmock.h>

#include "analyze_fixture.h"
#include "analyzer/render/sentences.h"
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

TEST_F(Analyze, OneErrorSeenTwiceOrOftenIsOneFinding) {
  ReportText text;
  text.process()
      .driver()
      .device(0, "6.1")
      .object(1, "/home/u/libfoo.so", {"sm_75"})
      .module(1, "1")
      .module(2, "1");
  text.failure(1, "lookup", 209, "_Z1av", R"("module":1,"object":1)");
  text.failure(2, "launch", 209, "_Z1bv", R"("module":2,"object":1)", "cuLaunchKernel");
  text.record("repeat", R"("id":1,"count":100)").end(2);
  const Analysis got = run(text);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].kernels, ElementsAre("a()", "b()"));
  EXPECT_EQ(got.findings[0].count, 101U);
}

// A handle that was never made, after the look-up that failed: one error, whatever kind of image is missing.
TEST_F(Analyze, WhatFollowsFromAMissingImageIsNoErrorOfItsOwn) {
  struct Case {
    const char* cc;
    std::vector<std::string> images;
    Cause cause;
  };
  for (const Case& each : {Case{"8.0", {"sm_90"}, Cause::no_image_for_arch},
                           Case{"8.0", {"sm_90", "compute_90"}, Cause::ptx_newer_than_device},
                           Case{"10.0", {"sm_90a"}, Cause::arch_specific_image}}) {
    ReportText text;
    text.process()
        .driver("13.0")
        .device(0, each.cc)
        .object(1, "/home/u/libfoo.so", each.images)
        .module(1, "1");
    text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
    text.failure(2, "launch", 400, kSaxpy, R"("module":1,"object":1)", "cuKernelGetFunction");
    const Analysis got = run(text.end());
    ASSERT_THAT(got.findings, SizeIs(1)) << each.cc;
    EXPECT_EQ(got.findings[0].cause, each.cause);
  }
}

TEST_F(Analyze, RanksThatFailAlikeAreOneFindingWithAllTheirGpus) {
  std::vector<ReportText> reports;
  for (unsigned rank = 0; rank < 4; ++rank) {
    ReportText text;
    text.process("", 17 + rank, 1, "/home/u/train", fmt::format("node{}", rank / 2)).driver();
    text.device(rank % 2, "6.1", "GTX 1080").object(1, "/home/u/libfoo.so", {"sm_75"}).module(1, "1");
    reports.push_back(
        text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)", "cuLaunchKernel", rank % 2).end());
  }
  const Analysis got = run_all(reports);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].count, 4U);
  EXPECT_THAT(got.findings[0].devices, SizeIs(2));
  EXPECT_THAT(got.devices, SizeIs(4)) << "two hosts with two GPUs each";
  EXPECT_THAT(got.processes, SizeIs(4));
}

TEST_F(Analyze, AnErrorLeftBehindByAnEarlierOneIsEvidence) {
  ReportText text;
  text.process().driver().device(0, "12.0").object(1, "/home/u/libfoo.so", {"sm_90"}).module(1, "1", 209);
  text.failure(1, "load", 209, kSaxpy, R"("module":1,"object":1)", "cuModuleLoadData");
  text.failure(2, "launch", 400, "", "", "cuLaunchKernel");
  const Analysis got = run(text.end(2));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].evidence,
              Contains(Field(&Evidence::text, HasSubstr("cuLaunchKernel answered 400 later"))));
  ReportText alone;
  alone.process().driver().device(0, "12.0").failure(1, "launch", 400, "", "", "cuLaunchKernel");
  EXPECT_EQ(run(alone.end()).findings.at(0).cause, Cause::context_mismatch);
}

ReportText probing(std::string_view end_stage) {
  ReportText text;
  text.process()
      .driver()
      .device(0, "8.6")
      .object(1, "/usr/lib/libcusparseLt.so.0", {"sm_90a"}, 2000)
      .module(1, "1", 209);
  for (unsigned i = 0; i < 5; ++i) {
    text.failure(
        i, "load", 209, "",
        R"("module":1,"object":1,"native":[{"object":"/usr/lib/libcusparseLt.so.0","build_id":null,"offset":1}])",
        "cuModuleLoadData");
  }
  if (!end_stage.empty())
    text.failure(9, end_stage, 209, "_Z1kv", R"("module":1,"object":1)", "cuLaunchKernel");
  return text.end();
}

TEST_F(Analyze, ALibraryThatProbesIsNoAlarm) {
  const Analysis got = run(probing(""));
  EXPECT_EQ(got.verdict, Verdict::ok);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::benign_probe);
  EXPECT_EQ(got.findings[0].severity, Severity::info);
  EXPECT_EQ(got.findings[0].count, 5U);
}

ReportText looking_for_files() {
  ReportText text;
  text.process().driver().device(0, "9.0");
  for (unsigned i = 1; i <= 3; ++i)
    text.object(i, "/tmp/cache/" + std::to_string(i), {})
        .failure(i, "load", 301, "", "\"object\":" + std::to_string(i), "cuModuleLoad");
  return text;
}

TEST_F(Analyze, AFileThatAProgramMakesIsNotMissed) {
  const auto severities = [&](ReportText text) { return mapped(run(text).findings, &Finding::severity); };
  EXPECT_THAT(severities(looking_for_files().end()), ElementsAre(Severity::error))
      << "one, as far as is known";
  EXPECT_THAT(severities(looking_for_files().object(9, "/l.so", {"sm_90"}).module(1, "9").end()),
              ElementsAre(Severity::info))
      << "it went on to load code";
  seen_.ending.status = 0;
  EXPECT_THAT(severities(looking_for_files().end()), ElementsAre(Severity::info));
  seen_.ending.status = 1;
  EXPECT_THAT(severities(looking_for_files().end()), ElementsAre(Severity::error));
}

TEST_F(Analyze, ALibraryWhoseLaunchFailsIs) { EXPECT_EQ(run(probing("launch")).verdict, Verdict::gap); }

// What could not be written may be the failure: a full disk is no good news.
TEST_F(Analyze, AReportThatLostRecordsIsNotOk) {
  ReportText lossy;
  lossy.process().driver().device(0, "8.6");
  lossy.record("end", R"("time":"2026-11-21T08:00:01Z","failures":1,"modules":1,"dropped":1)");
  const Analysis got = run(lossy);
  EXPECT_EQ(got.verdict, Verdict::incomplete);
  EXPECT_THAT(got.notes, Contains(HasSubstr("a record could not be written")));
  EXPECT_THAT(verdict_line(got).text, HasSubstr("lacks records that could not be written"));
  lossy = failing("6.1", {"sm_75"});
  lossy.record("end", R"("time":"2026-11-21T08:00:01Z","failures":2,"modules":1,"dropped":1)");
  EXPECT_EQ(run(lossy).verdict, Verdict::gap);
}

// Nor is a file that was damaged later: a line that cannot be read may be the failure's.
TEST_F(Analyze, AReportWithDamagedOrMissingLinesIsNotOk) {
  const auto end = [](unsigned seq, unsigned failures, unsigned modules) {
    return fmt::format(R"({{"type":"end","seq":{},"t":9,"failures":{},"modules":{},"dropped":0}})"
                       "\n",
                       seq, failures, modules);
  };
  const auto start = [] {
    ReportText text;
    text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_86"});
    return text;
  };
  const auto verdict = [&](const ReportText& text, std::string_view note, std::uint64_t lost) {
    const Analysis got = run(text);
    EXPECT_THAT(got.notes, Contains(HasSubstr(std::string(note))));
    EXPECT_EQ(got.processes.at(0).lost, lost) << note;
    EXPECT_THAT(verdict_line(got).text, HasSubstr("lacks records that are damaged or gone"));
    return got.verdict;
  };
  const std::string damaged = "{\"type\":\"failure\",\"seq\":4,\"id\"?1}\n";
  EXPECT_EQ(verdict(start().raw(damaged).raw(end(5, 1, 0)), "not valid JSON", 1), Verdict::incomplete);
  EXPECT_EQ(verdict(start().raw(damaged).raw(damaged).raw(end(6, 3, 0)), "not valid JSON", 3),
            Verdict::incomplete);
  EXPECT_EQ(verdict(start().raw(end(6, 0, 0)), "2 records that the shim wrote are missing", 2),
            Verdict::incomplete);
  // As it is after somebody has renumbered the lines.
  EXPECT_EQ(verdict(start().raw(end(4, 2, 0)), "it counts 2 failures, 0 are there", 2), Verdict::incomplete);
  EXPECT_EQ(verdict(start().module(1, "1").raw(end(5, 0, 3)), "it counts 3 loads, 1 are there", 2),
            Verdict::incomplete);
  // Equal loads that failed have one record, and repeated failures none but `repeat`.
  ReportText again = start().module(1, "1", 209);
  again.failure(1, "load", 209, "", R"("module":1,"object":1)", "cuModuleLoadData");
  again.record("repeat", R"("id":1,"count":7)").raw(end(7, 1, 7)).raw(R"({"type":"pack)");
  EXPECT_EQ(run(again).processes.at(0).lost, 0U) << "nor is a torn last line a loss";
}

TEST_F(Analyze, VerdictsWithoutFindings) {
  ReportText healthy;
  healthy.process().driver().device(0, "8.6");
  EXPECT_EQ(run(healthy).verdict, Verdict::incomplete);
  EXPECT_EQ(run(healthy.end(0)).verdict, Verdict::idle);
  EXPECT_EQ(run_all({}).verdict, Verdict::no_cuda);
  seen_.blind.push_back({17, "/usr/bin/sudo", "it is setuid"});
  EXPECT_EQ(run_all({}).verdict, Verdict::blind);
  EXPECT_EQ(run(healthy).verdict, Verdict::blind);
  EXPECT_EQ(run(failing("6.1", {"sm_75"})).verdict, Verdict::gap)
      << "what failed outweighs what was not seen";
}

TEST_F(Analyze, WhatIsNotAboutImagesIsAFailure) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"sm_86"});
  text.failure(1, "other", 2, "", "", "cuMemAlloc_v2");
  const Analysis got = run(text.end());
  EXPECT_EQ(got.verdict, Verdict::failure);
  EXPECT_EQ(got.findings.at(0).cause, Cause::out_of_memory);
  EXPECT_EQ(got.findings.at(0).need, "");
}

TEST_F(Analyze, NoGpuIsSilentWhenTheProgramWentOn) {
  ReportText text;
  text.process().driver().failure(1, "init", 100, "", "", "cuInit");
  text.end();
  EXPECT_EQ(run(text).findings.at(0).severity, Severity::error) << "how it ended is not known";
  seen_.ending.status = 0;
  EXPECT_EQ(run(text).findings.at(0).severity, Severity::info);
  EXPECT_EQ(run(text).verdict, Verdict::ok);
  seen_.ending.status = 1;
  EXPECT_EQ(run(text).findings.at(0).cause, Cause::no_device);
  EXPECT_EQ(run(text).verdict, Verdict::failure);
}

TEST_F(Analyze, AChildOfAnInitializedProcessIsAFork) {
  ReportText child;
  child.process("", 18, 17).failure(1, "other", 3, "", "", "cuCtxGetCurrent").end();
  ReportText parent;
  parent.process("", 17, 1).driver().device(0, "8.6").end(0);
  const Analysis got = run_all({child, parent});
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::fork_after_init);
  EXPECT_THAT(got.processes, SizeIs(2));
  EXPECT_EQ(run_all({child}).findings.at(0).cause, Cause::unknown);
}

TEST_F(Analyze, TimeSpentOnCompilingIsTold) {
  ReportText text;
  text.process().driver().device(0, "8.6").object(1, "/home/u/libfoo.so", {"compute_80:8.0"});
  text.module(1, "1", 0, "true", 700).module(2, "1", 0, "false", 9000).module(3, "1", 222, "true", 9000);
  EXPECT_EQ(run(text).findings.at(0).severity, Severity::info);
  const Analysis got = run(text.module(4, "1", 0, "true", 400).end(0));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::jit_tax);
  EXPECT_EQ(got.findings[0].severity, Severity::warning);
  EXPECT_THAT(got.findings[0].evidence.at(0).text,
              HasSubstr("2 modules of libfoo.so from PTX, which took 1.1 s"));
  EXPECT_EQ(got.verdict, Verdict::ok);
  EXPECT_THAT(got.findings[0].fixes, SizeIs(1));
  EXPECT_THAT(got.findings[0].fixes[0].title, HasSubstr("sm_86"));
}

TEST_F(Analyze, TimeSpentOnCompilingIsToldByFile) {
  ReportText text;
  text.process(R"("CUDA_CACHE_DISABLE":"1")").driver().device(0, "8.6");
  text.object(1, "/home/u/libfoo.so", {"compute_80:8.0"}).object(2, "/home/u/libbar.so", {"compute_80:8.0"});
  text.module(1, "1", 0, "true", 300).module(2, "2", 0, "true", 900).module(3, "null", 0, "true", 1);
  const Analysis got = run(text.end(0));
  ASSERT_THAT(got.findings, SizeIs(3));
  EXPECT_EQ(got.findings[0].object, "/home/u/libbar.so") << "the longest first";
  EXPECT_EQ(got.findings[0].severity, Severity::warning) << "together they take over a second";
  EXPECT_THAT(got.findings[0].evidence.at(0).text,
              HasSubstr("1 module of libbar.so from PTX, which took 900 ms"));
  EXPECT_THAT(got.findings[0].fixes.at(0).commands, ElementsAre("unset CUDA_CACHE_DISABLE"));
  EXPECT_EQ(got.findings[1].object, "/home/u/libfoo.so");
  EXPECT_EQ(got.findings[2].object, "");
  EXPECT_THAT(got.findings[2].headline, HasSubstr("code from memory"));
}

TEST_F(Analyze, ACubinInMemoryThatTheDriverIsTooOldFor) {
  ReportText text;
  text.process().driver("12.4").device(0, "9.0");
  text.record("module", R"("id":1,"object":null,"offset":null,"content_hash":"00000000000000ff","size":4096,)"
                        R"("api":"cuModuleLoadData","result":200,"selected":"sm_90","jit":false,"ms":0.1,)"
                        R"("device":0,"toolkit":"13.0")");
  text.failure(1, "load", 200, "", R"("module":1,"object":null)", "cuModuleLoadData");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].cause, Cause::driver_too_old_for_image);
  EXPECT_THAT(got.findings[0].fixes.at(0).title, HasSubstr("580.65.06"));
}

TEST_F(Analyze, OddIdsAreHarmless) {
  ReportText text;
  text.process().driver().device(0, "8.6");
  text.record("object", R"("id":1,"path":"","build_id":null,"fatbins":1,"images":[]})")
      .record("object", R"("id":1,"path":"/x","images":null)");
  text.module(1, "2").module(2, "1").module(1, "1");
  text.record("package", R"("object":77,"name":"p")");
  text.failure(1, "launch", 209, "_Z1kv", R"("module":1,"object":2)")
      .failure(1, "launch", 209, "_Z1kv", R"("module":99)");
  text.failure(2, "lookup", 500, "_Z1kv", R"("module":2,"object":99)", "f", 4000000000U);
  text.record(
      "gap",
      R"("object":5,"offset":5,"device":9,"kernels":[],"complete":true,"have":[],"need":"sm_1000000")");
  text.record(
      "gap",
      R"("object":1,"offset":0,"device":null,"kernels":[],"complete":true,"have":["sm_86"],"need":"")");
  const Analysis got = run(text.end());
  EXPECT_EQ(got.verdict, Verdict::gap);
  EXPECT_FALSE(got.findings.empty());
}

TEST_F(Analyze, AFloodOfFailuresEnds) {
  ReportText text;
  text.process().driver().device(0, "6.1").object(1, "/home/u/libfoo.so", {"sm_75"}).module(1, "1");
  for (unsigned i = 0; i < 20000; ++i)
    text.failure(i, "launch", 209, fmt::format("_Z4k{:04}v", i), R"("module":1,"object":1)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_LE(got.findings[0].kernels.size(), 1000U);
  EXPECT_FALSE(got.findings[0].kernels_complete);
}

TEST_F(Analyze, WhatCannotBeReadIsANoteAndTheRestIsRead) {
  TemporaryFolder folder;
  folder.write("a.jsonl", "nonsense\n");
  folder.write("deep/er/b.jsonl", failing("6.1", {"sm_75"}).text());
  folder.write("c.txt", "not looked at");
  const Analysis got = analyze({folder.path(), folder.path() / "deep", folder.path() / "none.jsonl"}, {});
  EXPECT_THAT(got.processes, SizeIs(1)) << "named twice, read once";
  EXPECT_THAT(got.findings, SizeIs(1));
  EXPECT_FALSE(got.nothing_readable);
  EXPECT_THAT(got.notes, Contains(HasSubstr("a.jsonl: is not a kshim report")));
  EXPECT_THAT(got.notes, Contains(HasSubstr("none.jsonl: is not there")));
  EXPECT_THAT(got.notes, Not(Contains(HasSubstr("c.txt"))));
}

TEST_F(Analyze, NothingReadableIsSaid) {
  TemporaryFolder folder;
  const auto file = folder.write("x", "no report");
  const Analysis got = analyze({file, folder.path()}, {});
  EXPECT_TRUE(got.nothing_readable);
  EXPECT_THAT(got.notes, Contains(HasSubstr("holds no report")));
  EXPECT_THAT(got.findings, IsEmpty());
}

TEST_F(Analyze, TellsHowFarItIs) {
  TemporaryFolder folder;
  folder.write("a.jsonl", failing("6.1", {"sm_75"}).text());
  folder.write("b.jsonl", failing("7.0", {"sm_75"}).text());
  std::vector<std::uint64_t> steps;
  std::uint64_t all = 0;
  options_.progress = [&](std::uint64_t done, std::uint64_t total) {
    steps.push_back(done);
    all = total;
  };
  analyze({folder.path()}, options_);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_LT(steps[0], steps[1]);
  EXPECT_EQ(steps[1], all);
}

TEST_F(Analyze, WorstFirst) {
  ReportText text = failing("6.1", {"sm_75"});
  const Analysis got = run_all({probing(""), text});
  ASSERT_THAT(got.findings, SizeIs(2));
  EXPECT_EQ(got.findings[0].severity, Severity::error);
  EXPECT_EQ(got.findings[1].severity, Severity::info);
}

}  // namespace
}  // namespace kshim::test

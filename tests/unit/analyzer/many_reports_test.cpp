// SPDX-License-Identifier: Apache-2.0
// Reports of many ranks, hosts and runs: the same finding once, and where it was seen.
#include <gmock/gmock.h>

#include <algorithm>

#include "analyze_fixture.h"
#include "analyzer/diagnose/merge.h"
#include "analyzer/verbs/processes.h"
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

class ManyReports : public Analyze {
 protected:
  struct Rank {
    unsigned rank = 0;
    std::string run = "aaaa1111";
    std::string cc = "6.1";
    std::string driver = "13.0";
    bool fails = true;
    std::string build_id = "ab12";
  };
  static std::string host_of(unsigned rank) { return fmt::format("node{:02}", rank / 8); }
  static ReportText report_of(const Rank& at) {
    ReportText text;
    text.record(
        "process",
        fmt::format(R"("schema":"kshim-report/1","shim":"0.1.0","run":"{}","host":"{}","pid":{},"start":5,)"
                    R"("ppid":1,"rank":{},"time":"2026-11-21T08:00:00Z","exe":"/u/train","argv":["train"],)"
                    R"("cwd":"/u","env":{{}})",
                    at.run, host_of(at.rank), 4000 + at.rank % 8, at.rank));
    text.driver(at.driver).device(0, at.cc, "Test", fmt::format("GPU-{}", at.rank));
    text.record(
        "object",
        fmt::format(R"("id":1,"path":"/u/libfoo.so","build_id":"{}","runtime":"static","fatbins":1,)"
                    R"("images":[{{"kind":"cubin","arch":"sm_80","isa":null,"count":3,"bytes":5000000}}])",
                    at.build_id));
    text.module(1, "1");
    if (at.fails) text.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)");
    return text.end(at.fails ? 1 : 0);
  }
  Analysis ranks(const std::vector<Rank>& all) {
    std::vector<ReportText> reports;
    for (const Rank& rank : all) reports.push_back(report_of(rank));
    return run_all(reports);
  }
};

TEST_F(ManyReports, OneFindingTellsItsRanksAndHosts) {
  std::vector<Rank> all;
  for (unsigned rank = 0; rank < 32; ++rank) all.push_back({.rank = rank, .fails = rank < 16});
  const Analysis got = ranks(all);
  ASSERT_THAT(got.findings, SizeIs(1));
  const Finding& finding = got.findings[0];
  EXPECT_EQ(finding.count, 16U);
  EXPECT_EQ(finding.seen_in, "ranks 0-7 on node00, 8-15 on node01 (16 of 32)");
  ASSERT_THAT(finding.processes, SizeIs(16));
  EXPECT_EQ(finding.processes_total, 16U);
  const auto rank9 = std::find_if(finding.processes.begin(), finding.processes.end(),
                                  [](const SeenIn& seen) { return seen.rank == 9U; });
  ASSERT_NE(rank9, finding.processes.end());
  EXPECT_EQ(rank9->host, "node01");
  EXPECT_EQ(rank9->pid, 4001);
  EXPECT_EQ(rank9->run, "aaaa1111");
  EXPECT_EQ(rank9->count, 1U);
  ASSERT_THAT(got.runs, SizeIs(1));
  EXPECT_EQ(got.runs[0].processes, 32U);
  EXPECT_EQ(got.runs[0].hosts, 4U);
  EXPECT_EQ(got.runs[0].ranks, 32U);
  EXPECT_EQ(got.runs[0].failed, 16U);
}

TEST_F(ManyReports, OneProcessNeedsNoWhere) {
  const Analysis got = ranks({{.rank = 3}});
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].seen_in, "");
  EXPECT_THAT(got.findings[0].processes, SizeIs(1));
}

TEST_F(ManyReports, OneRankWithAnotherGpuIsTold) {
  std::vector<Rank> all;
  for (unsigned rank = 0; rank < 8; ++rank)
    all.push_back({.rank = rank, .cc = rank == 3 ? "7.5" : "8.6", .fails = rank == 3});
  const Analysis got = ranks(all);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].seen_in, "rank 3 only, on node00 (1 of 8)");
  EXPECT_THAT(
      got.findings[0].remarks,
      Contains("These are the processes whose GPU is of compute capability 7.5; the others have 8.6."));
}

TEST_F(ManyReports, HostsWithAnotherDriverAreTold) {
  std::vector<Rank> all;
  for (unsigned rank = 0; rank < 16; ++rank)
    all.push_back({.rank = rank, .driver = rank < 8 ? "12.2" : "13.0", .fails = rank < 8});
  const Analysis got = ranks(all);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].remarks,
              Contains("These processes have a driver for CUDA 12.2; the others have one for CUDA 13.0."));
}

TEST_F(ManyReports, OneHostIsToldWhereNothingElseDiffers) {
  std::vector<Rank> all;
  for (unsigned rank = 0; rank < 16; ++rank) all.push_back({.rank = rank, .fails = rank < 8});
  const Analysis got = ranks(all);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].remarks,
              Contains("These are all processes of node00; on node01 there is none of it."));
  // Where hosts are hit in part, no host is to blame.
  all[9].fails = true;
  EXPECT_THAT(ranks(all).findings.at(0).remarks, Not(Contains(HasSubstr("These are"))));
}

TEST_F(ManyReports, RunsInOneFolderAreToldApart) {
  std::vector<Rank> all;
  for (const char* run : {"aaaa1111", "bbbb2222"}) {
    for (unsigned rank = 0; rank < 4; ++rank)
      all.push_back({.rank = rank, .run = run, .fails = run[0] == 'a' || rank == 1});
  }
  const Analysis got = ranks(all);
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_EQ(got.findings[0].seen_in,
            "run aaaa1111: all 4 ranks on node00; run bbbb2222: rank 1 only, on node00 (1 of 4)");
  EXPECT_THAT(got.runs, ElementsAre(Field(&RunSummary::failed, 4U), Field(&RunSummary::failed, 1U)));
}

TEST_F(ManyReports, AnotherBuildOfTheFileIsAnotherFinding) {
  const Analysis got = ranks({{.rank = 0}, {.rank = 1, .build_id = "cd34"}});
  ASSERT_THAT(got.findings, SizeIs(2));
  EXPECT_NE(got.findings[0].build_id, got.findings[1].build_id);
  EXPECT_EQ(got.findings[0].seen_in, "rank 0 only, on node00 (1 of 2)");
  EXPECT_EQ(got.findings[1].seen_in, "rank 1 only, on node00 (1 of 2)");
}

TEST_F(ManyReports, TheNoteOfManyIsOneNote) {
  std::vector<ReportText> reports;
  for (unsigned rank = 0; rank < 100; ++rank) {
    reports.push_back(report_of({.rank = rank}));
    reports.back().raw("{\"type\":\"mod");
  }
  const Analysis got = run_all(reports);
  ASSERT_THAT(got.notes, SizeIs(1));
  EXPECT_THAT(got.notes[0], HasSubstr("the last line is torn"));
  EXPECT_THAT(got.notes[0], HasSubstr("(and so of 99 more files)"));
}

TEST_F(ManyReports, ChildrenAreOfTheirParentsRunAndHost) {
  const auto child = [](const char* run) {
    ReportText text;
    text.record(
        "process",
        fmt::format(
            R"("schema":"kshim-report/1","shim":"0.1.0","run":"{}","host":"box","pid":18,"start":6,)"
            R"("ppid":17,"rank":null,"time":"2026-11-21T08:00:00Z","exe":"/u/train","argv":["/u/train"],)"
            R"("cwd":"/u","env":{{}})",
            run));
    return text.failure(1, "init", 3, "", "", "cudaMalloc").end();
  };
  ReportText parent;
  parent.record("process",
                R"("schema":"kshim-report/1","shim":"0.1.0","run":"r1","host":"box","pid":17,"start":5,)"
                R"("ppid":1,"rank":null,"time":"2026-11-21T08:00:00Z","exe":"/u/train","argv":["/u/train"],)"
                R"("cwd":"/u","env":{})");
  parent.driver().device(0, "8.6").end(0);
  for (const bool parent_first : {true, false}) {
    const auto reports = parent_first ? std::vector<ReportText>{parent, child("r1")}
                                      : std::vector<ReportText>{child("r1"), parent};
    const Analysis got = run_all(reports);
    ASSERT_THAT(got.findings, SizeIs(1));
    EXPECT_EQ(got.findings[0].cause, Cause::fork_after_init) << parent_first;
  }
  // The same process ids in another run are other processes.
  const Analysis other = run_all({parent, child("r2")});
  ASSERT_THAT(other.findings, SizeIs(1));
  EXPECT_NE(other.findings[0].cause, Cause::fork_after_init);
}

Finding numbered(Severity severity, std::size_t number) {
  Finding out;
  out.cause = Cause::no_image_for_arch;
  out.severity = severity;
  out.object = fmt::format("/u/lib{}.so", number);
  return out;
}

TEST(FindingTable, KeepsErrorsWhereNotesHaveFilledIt) {
  FindingTable table;
  for (std::size_t i = 0; i < 100'000; ++i) table.add(numbered(Severity::info, i), {});
  const std::size_t notes = table.rows().size();
  EXPECT_LT(notes, 10'000U);
  EXPECT_EQ(table.left_out(), 100'000 - notes);
  table.add(numbered(Severity::error, 1'000'000), {});
  EXPECT_EQ(table.rows().size(), notes + 1);
}

TEST(FindingTable, CountsNeverWrap) {
  FindingTable table;
  Finding finding = numbered(Severity::error, 1);
  finding.count = ~std::uint64_t{0};
  table.add(Finding(finding), 0U);
  table.add(std::move(finding), 1U);
  EXPECT_EQ(table.rows()[0].finding.count, ~std::uint64_t{0});
}

TEST(Advised, TheBestFoundedOfThoseThatSayTheSame) {
  Advised advised;
  Finding finding = numbered(Severity::error, 1);
  finding.confidence = 0.5;
  EXPECT_TRUE(advised.wants(finding));
  EXPECT_FALSE(advised.wants(finding));
  finding.confidence = 0.9;
  EXPECT_TRUE(advised.wants(finding)) << "it will speak for all";
  EXPECT_FALSE(advised.wants(finding));
  finding.need = "sm_61";
  EXPECT_TRUE(advised.wants(finding));
}

TEST_F(ManyReports, NoFailureOfOneProcessIsLostAmongManyAlike) {
  constexpr unsigned kFailures = 300;
  ReportText text;
  text.process().driver().device(0, "6.1").object(1, "/u/libfoo.so", {"sm_80"}).module(1, "1");
  for (unsigned i = 1; i <= kFailures; ++i)
    text.failure(i, "lookup", 209, fmt::format("kernel_{}", i), R"("module":1,"object":1)");
  const Analysis got = run(text.end());
  ASSERT_THAT(got.findings, SizeIs(1));
  const Finding& finding = got.findings[0];
  EXPECT_EQ(finding.count, kFailures);
  EXPECT_EQ(finding.call_count, kFailures);
  EXPECT_THAT(finding.kernels, SizeIs(kFailures));
  EXPECT_EQ(finding.kernels.back(), fmt::format("kernel_{}", kFailures));
  EXPECT_THAT(finding.failures, SizeIs(kFailures));
  EXPECT_THAT(finding.evidence, Not(IsEmpty()));
}

TEST_F(ManyReports, WhatSpeaksForAllHasItsAdvice) {
  // The first knows the code alone, the second what is in the file.
  ReportText poor;
  poor.process("", 1, 0, "/u/train").driver().device(0, "6.1").object(1, "/u/libfoo.so", {}).module(1, "1");
  poor.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)").end();
  ReportText rich;
  rich.process("", 2, 0, "/u/train")
      .driver()
      .device(0, "6.1")
      .object(1, "/u/libfoo.so", {"sm_75"})
      .module(1, "1");
  rich.failure(1, "lookup", 209, kSaxpy, R"("module":1,"object":1)").end();
  const Analysis alone = run(rich);
  const Analysis both = run_all({poor, rich});
  ASSERT_THAT(alone.findings, SizeIs(1));
  ASSERT_THAT(both.findings, SizeIs(1));
  ASSERT_FALSE(alone.findings[0].fixes.empty());
  ASSERT_FALSE(both.findings[0].fixes.empty());
  EXPECT_EQ(both.findings[0].fixes[0].commands, alone.findings[0].fixes[0].commands);
}

}  // namespace
}  // namespace kshim::test

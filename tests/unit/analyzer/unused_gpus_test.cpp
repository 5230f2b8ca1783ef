// SPDX-License-Identifier: Apache-2.0
// A program that initialized CUDA and used no kernel, as far as a report can tell.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::test {
namespace {

using ::testing::ElementsAre;

class Unused : public Analyze {
 protected:
  static ReportText asking(unsigned pid = 17) {
    ReportText text;
    return text.process("", pid).driver().device(0, "9.0");
  }
  /// ReportText::end() counts a module.
  static ReportText ended(ReportText text) {
    return text.record("end", R"("time":"","failures":0,"modules":0,"dropped":0)");
  }
  bool idle(const std::vector<ReportText>& reports) {
    const Analysis got = run_all(reports);
    if (got.verdict == Verdict::idle) {
      EXPECT_EQ(worst(got), Severity::none);
    }
    return got.verdict == Verdict::idle;
  }
};

TEST_F(Unused, IsIdleWithWhatItHadLoaded) {
  EXPECT_TRUE(idle({ended(asking())})) << "how it ended may be unknown";
  seen_.ending.status = 0;
  EXPECT_TRUE(idle({ended(asking())}));
  EXPECT_TRUE(idle({ended(asking()), ended(asking(18))}));
  ReportText no_device;
  EXPECT_TRUE(idle({ended(no_device.process().driver())})) << "without a GPU, too";
  const auto library = [](const std::string& path) {
    return R"("soname":"x","path":")" + path + R"(","version":null,"build_id":null)";
  };
  EXPECT_THAT(run(ended(asking()
                            .record("library", library("/usr/lib/libcuda.so.1"))
                            .record("library", library("/v/libcublas.so.12"))
                            .record("library", library("/v/libcublas.so.12"))))
                  .mapped,
              ElementsAre("libcublas.so.12"));
}

TEST_F(Unused, AnEndingThatTheReportHasCounts) {
  Analysis got = run(ended(asking().record("exit", R"("status":0,"signal":null)")));
  EXPECT_EQ(got.verdict, Verdict::idle);
  EXPECT_EQ(got.exit_status, 0);
  got = run(ended(asking().record("exit", R"("status":3,"signal":null)")));
  EXPECT_EQ(got.verdict, Verdict::failure);
  EXPECT_EQ(got.exit_status, 3);
  EXPECT_EQ(worst(got), Severity::none) << "nothing is accused by a status alone";
  got = run(ended(
      asking().object(1, "/l.so", {"sm_90"}).module(1, "1").record("exit", R"("status":1,"signal":null)")));
  EXPECT_EQ(got.verdict, Verdict::failure);
  got = run_all({ended(asking().record("exit", R"("status":0,"signal":null)")),
                 ended(asking(18).record("exit", R"("status":null,"signal":11)"))});
  EXPECT_EQ(got.verdict, Verdict::failure);
  EXPECT_EQ(got.term_signal, 11);
  seen_.ending.status = 0;
  EXPECT_EQ(run(ended(asking().record("exit", R"("status":3,"signal":null)"))).verdict, Verdict::idle)
      << "the caller knows";
}

TEST_F(Unused, IsNotIdleWhereItUsedOneOrMayHave) {
  ASSERT_TRUE(idle({ended(asking())}));
  EXPECT_FALSE(idle({asking()})) << "it may go on";
  EXPECT_FALSE(idle({asking().record("end", R"("failures":0,"modules":1,"dropped":0)")}))
      << "loads beyond those that are written";
  EXPECT_FALSE(idle({ended(asking().object(1, "/l.so", {"sm_90"}).module(1, "1"))})) << "it loaded";
  EXPECT_FALSE(idle({ended(asking().failure(1, "init", 100, "", "", "cuInit"))})) << "a failure says more";
  EXPECT_FALSE(idle({ended(asking()), ended(asking(18).object(1, "/l.so", {"sm_90"}).module(1, "1"))}))
      << "a launcher, which counts GPUs for others";
  EXPECT_FALSE(idle({ended(asking()), asking(18)})) << "of others too little is known";
  EXPECT_FALSE(
      idle({ended(asking().record("bypass", R"("path":"/l.so","how":"deepbind","names":["cuInit"])"))}));
  ReportText no_driver;
  EXPECT_FALSE(idle({ended(no_driver.process())}));
  seen_.ending.status = 1;
  EXPECT_FALSE(idle({ended(asking())})) << "the verdict has it";
  seen_.ending.status = std::nullopt;
  seen_.ending.signal = 9;
  EXPECT_FALSE(idle({ended(asking())}));
  seen_.ending.signal = std::nullopt;
  seen_.blind.push_back({17, "/usr/bin/sudo", "it is setuid"});
  EXPECT_FALSE(idle({ended(asking())})) << "some were not seen";
}

}  // namespace
}  // namespace kshim::test

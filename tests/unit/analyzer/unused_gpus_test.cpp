// SPDX-License-Identifier: Apache-2.0
// A program that went on on the CPU, as far as a report can tell.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

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
  bool noted(const std::vector<ReportText>& reports) {
    const Analysis got = run_all(reports);
    unsigned notes = 0;
    for (const std::string& note : got.notes) notes += note.find("kshim explain --log") != std::string::npos;
    EXPECT_LE(notes, 1U) << "once, however many";
    if (notes != 0) {
      EXPECT_EQ(got.verdict, Verdict::ok);
      EXPECT_EQ(worst(got), Severity::none);
    }
    return notes != 0;
  }
};

TEST_F(Unused, WhoAskedForGpusAndLoadedNothingIsNamed) {
  EXPECT_TRUE(noted({ended(asking())})) << "how it ended may be unknown";
  options_.exit_status = 0;
  EXPECT_TRUE(noted({ended(asking())}));
  EXPECT_TRUE(noted({ended(asking()), ended(asking(18))}));
  EXPECT_THAT(run(ended(asking())).notes,
              Contains(HasSubstr("box.0.jsonl: the program initialized CUDA but loaded no GPU code")));
}

TEST_F(Unused, NothingIsSaidWhereItCouldBeWrongOrIsSaidBetter) {
  ASSERT_TRUE(noted({ended(asking())}));
  EXPECT_FALSE(noted({asking()})) << "it may go on";
  EXPECT_FALSE(noted({asking().record("end", R"("failures":0,"modules":1,"dropped":0)")}))
      << "loads beyond those that are written";
  EXPECT_FALSE(noted({ended(asking().object(1, "/l.so", {"sm_90"}).module(1, "1"))})) << "it loaded";
  EXPECT_FALSE(noted({ended(asking().failure(1, "init", 100, "", "", "cuInit"))})) << "a failure says more";
  EXPECT_FALSE(noted({ended(asking()), ended(asking(18).object(1, "/l.so", {"sm_90"}).module(1, "1"))}))
      << "a launcher, which counts GPUs for others";
  EXPECT_FALSE(noted({ended(asking()), asking(18)})) << "of others too little is known";
  EXPECT_FALSE(
      noted({ended(asking().record("bypass", R"("path":"/l.so","how":"deepbind","names":["cuInit"])"))}));
  ReportText no_device;
  EXPECT_FALSE(noted({ended(no_device.process().driver())})) << "there is no GPU";
  ReportText no_driver;
  EXPECT_FALSE(noted({ended(no_driver.process())}));
  options_.exit_status = 1;
  EXPECT_FALSE(noted({ended(asking())})) << "the verdict has it";
  options_.exit_status = std::nullopt;
  options_.term_signal = 9;
  EXPECT_FALSE(noted({ended(asking())}));
  options_.term_signal = std::nullopt;
  options_.blind.push_back({17, "/usr/bin/sudo", "it is setuid"});
  EXPECT_FALSE(noted({ended(asking())})) << "some were not seen";
}

}  // namespace
}  // namespace kshim::test

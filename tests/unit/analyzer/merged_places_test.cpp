// SPDX-License-Identifier: Apache-2.0
// Where a finding of many failures happened.
#include <gmock/gmock.h>

#include "analyze_fixture.h"

namespace kshim::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class MergedPlaces : public Analyze {
 protected:
  static constexpr unsigned kLoads = 7;  // the line that loads
  /// Loads, then launches; only the last has a line.
  static ReportText process_with(unsigned loads, unsigned launches, unsigned line) {
    ReportText text;
    text.process().driver().device(0, "12.0").object(1, "/u/libfoo.so", {"sm_80"}).module(1, "1", 209);
    for (unsigned i = 1; i <= loads; ++i) text.failure(i, "load", 209, "", at(kLoads), "cuLibraryLoadData");
    for (unsigned i = 1; i <= launches; ++i) {
      const bool told = line != 0 && i == launches;
      text.failure(loads + i, "launch", 209, told ? "_Z1bv" : "_Z1av",
                   told ? at(line) : R"("module":1,"object":1)", "cudaLaunchKernel");
    }
    return text.end(loads + launches);
  }
  static std::string at(unsigned line) {
    return fmt::format(
        R"("module":1,"object":1,"python":[{{"file":"/u/train.py","line":{},"function":"main"}}])", line);
  }
  static auto line(unsigned number) { return Field(&Place::line, number); }
};

TEST_F(MergedPlaces, ALaunchComesBeforeTheLoads) {
  // 300: more than are read in full.
  for (const unsigned loads : {1U, 63U, 64U, 300U}) {
    const Analysis got = run(process_with(loads, 1, 25));
    ASSERT_THAT(got.findings, SizeIs(1)) << loads;
    EXPECT_THAT(got.findings[0].where, ElementsAre(line(25), line(kLoads))) << loads;
    EXPECT_EQ(got.findings[0].failed_kernel, "b()") << loads;
    EXPECT_THAT(got.findings[0].evidence, Contains(Field(&Evidence::text, HasSubstr("cudaLaunchKernel"))));
  }
}

TEST_F(MergedPlaces, ALaunchWithoutAPlaceTakesNoneAwayAndKeepsNoneOut) {
  EXPECT_THAT(run(process_with(300, 5, 0)).findings.at(0).where, ElementsAre(line(kLoads)));
  EXPECT_THAT(run(process_with(300, 5, 25)).findings.at(0).where, ElementsAre(line(25), line(kLoads)));
  EXPECT_THAT(run(process_with(0, 5, 25)).findings.at(0).where, ElementsAre(line(25)));
}

TEST_F(MergedPlaces, PlacesOfOneKindStayInTheirOrder) {
  ReportText text;
  text.process().driver().device(0, "12.0").object(1, "/u/libfoo.so", {"sm_80"}).module(1, "1");
  text.failure(1, "launch", 209, "_Z1av", at(30), "cudaLaunchKernel");
  text.failure(2, "lookup", 209, "_Z1bv", at(20));
  text.failure(3, "load", 209, "", at(10), "cuLibraryLoadData");
  const Analysis got = run(text.end(3));
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].where, ElementsAre(line(30), line(20), line(10)));
  EXPECT_EQ(got.findings[0].failed_kernel, "a()");
}

TEST_F(MergedPlaces, ALaunchInAnotherProcessComesBeforeTheLoads) {
  ReportText after;  // a launch that has no place, then loads that have one
  after.process().driver().device(0, "12.0").object(1, "/u/libfoo.so", {"sm_80"}).module(1, "1", 209);
  after.failure(1, "launch", 209, "_Z1av", R"("module":1,"object":1)", "cudaLaunchKernel");
  after.failure(2, "load", 209, "", at(kLoads), "cuLibraryLoadData");
  const Analysis got = run_all({process_with(300, 0, 0), after.end(2), process_with(0, 1, 25)});
  ASSERT_THAT(got.findings, SizeIs(1));
  EXPECT_THAT(got.findings[0].where, ElementsAre(line(25), line(kLoads)));
}

}  // namespace
}  // namespace kshim::test

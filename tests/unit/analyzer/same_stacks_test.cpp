// SPDX-License-Identifier: Apache-2.0
// Failures that name another one for their frames.
#include <gmock/gmock.h>

#include "analyzer/input/report/record_parser.h"
#include "read_report_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string native(std::string_view object) {
  return fmt::format(R"("native":[{{"object":"{}","build_id":null,"offset":64,"symbol":"f"}}])", object);
}
std::string python(unsigned line) {
  return fmt::format(R"("python":[{{"file":"a.py","line":{},"function":"f"}}])", line);
}

class SameStacks : public ReadReport {
 protected:
  /// One failure of a load for each; `refs`: its fields for stacks.
  Report failures(const std::vector<std::string>& refs) {
    ReportText text;
    text.process().device(0, "8.6");
    for (std::size_t i = 0; i < refs.size(); ++i)
      text.failure(static_cast<unsigned>(i + 1), "load", 209, "", refs[i]);
    return read(text.end(static_cast<unsigned>(refs.size())).text());
  }
};

TEST_F(SameStacks, FramesAreFilledIn) {
  const Report report = failures({native("/a.so") + "," + python(7), native("/b.so") + R"(,"python_of":1)",
                                  R"("native":null,"native_of":2,"python_of":1)",
                                  R"("python_main":[{"file":"m.py","line":1,"function":"m"}],"native_of":1)",
                                  R"("python_main_of":4)"});
  ASSERT_THAT(report.failures, SizeIs(5));
  EXPECT_EQ(report.failures[1].native.at(0).object, "/b.so");
  EXPECT_EQ(report.failures[1].python.at(0).line, 7U);
  EXPECT_EQ(report.failures[2].native.at(0).object, "/b.so");
  EXPECT_EQ(report.failures[2].native.at(0).symbol, "f");
  EXPECT_EQ(report.failures[2].python.at(0).line, 7U);
  EXPECT_EQ(report.failures[3].native.at(0).object, "/a.so");
  EXPECT_THAT(report.failures[3].python, IsEmpty());
  EXPECT_EQ(report.failures[4].python_main.at(0).file, "m.py");
  EXPECT_THAT(report.failures[4].native, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_EQ(report.failures[2].id, 3U);
}

TEST_F(SameStacks, MissingStackIsReported) {
  const Report report = failures({native("/a.so"), R"("native_of":17)", R"("native_of":18446744073709551615)",
                                  R"("native_of":0)", R"("native_of":1)"});
  for (const std::size_t i : {1U, 2U, 3U}) EXPECT_THAT(report.failures[i].native, IsEmpty());
  EXPECT_THAT(report.failures[4].native, SizeIs(1));
  EXPECT_EQ(notes_of(report),
            "4: `failure` 2 has the native frames of failure 17, which is not there: its stack is not known "
            "(2 more like this)\n");
}

TEST_F(SameStacks, ALostRecordIsNotReplacedByAnother) {
  ReportText text;
  text.process().device(0, "8.6").failure(1, "load", 209, "", native("/a.so"));
  text.raw(R"({"type":"failure","seq":3,"t":1,"id":2,"native":[{"object":"/b.)"
           "\n");
  text.failure(3, "load", 209, "", R"("native_of":2)").end(3);
  const Report report = read(text.text());
  ASSERT_THAT(report.failures, SizeIs(2));
  EXPECT_THAT(report.failures[1].native, IsEmpty());
  EXPECT_EQ(
      notes_of(report),
      "4: skipped, not valid JSON\n"
      "5: `failure` 3 has the native frames of failure 2, which is not there: its stack is not known\n");
}

TEST_F(SameStacks, CirclesAndChainsEnd) {
  const Report report = failures({R"("native_of":1)", R"("native_of":3)", R"("native_of":2)", native("/a.so"),
                                  R"("native_of":4)", R"("native_of":5)", R"("python_of":4)"});
  for (const std::size_t i : {0U, 1U, 2U, 5U}) EXPECT_THAT(report.failures[i].native, IsEmpty());
  EXPECT_THAT(report.failures[4].native, SizeIs(1));
  EXPECT_EQ(
      notes_of(report),
      "3: `failure` 1 has the native frames of failure 1, which has none itself: its stack is not known "
      "(4 more like this)\n");
}

TEST_F(SameStacks, LinesInAnotherOrderAreNamed) {
  const Report report = failures({R"("native_of":2)", native("/a.so")});
  EXPECT_EQ(report.failures[0].native.at(0).object, "/a.so");
  EXPECT_EQ(
      notes_of(report),
      "3: `failure` 1 has the native frames of failure 2, which comes later: the lines are not in their "
      "order\n");
}

TEST_F(SameStacks, FramesOfItsOwnCount) {
  const Report report = failures({native("/a.so"), native("/b.so") + R"(,"native_of":1)"});
  EXPECT_EQ(report.failures[1].native.at(0).object, "/b.so");
  EXPECT_EQ(notes_of(report),
            "4: `failure` 2 has the native frames of failure 1, and frames of its own: those count\n");
}

TEST_F(SameStacks, ValuesOfOtherKindsAreNoReferences) {
  const Report report = failures({native("/a.so"), R"("native_of":"1")", R"("native_of":-1)",
                                  R"("native_of":1.0)", R"("native_of":[1])", R"("native_of":null)"});
  for (std::size_t i = 1; i < report.failures.size(); ++i) EXPECT_THAT(report.failures[i].native, IsEmpty());
  EXPECT_EQ(notes_of(report),
            "4: `failure`: `native_of` is not a whole number from 0 up (3 more lines like this)\n");
}

TEST_F(SameStacks, AnotherReportsFailureIsNotMeant) {
  const std::string one =
      ReportText().process("", 17).device(0, "8.6").failure(1, "load", 209, "", native("/a.so")).end().text();
  const Report other = read(ReportText()
                                .process("", 18)
                                .device(0, "8.6")
                                .failure(2, "load", 209, "", R"("native_of":1)")
                                .end()
                                .text());
  EXPECT_THAT(other.failures.at(0).native, IsEmpty());
  EXPECT_THAT(notes_of(other), HasSubstr("failure 1, which is not there"));
  // Both in one file: the id is the first process's, and taken once.
  const std::string two = ReportText().process("", 18).failure(1, "load", 700, "", native("/b.so")).text();
  const Report both = read(one + two);
  EXPECT_EQ(both.failures.at(0).native.at(0).object, "/a.so");
}

// One stack of megabytes, and thousands of lines that want it: memory stays within what is kept of failures.
TEST_F(SameStacks, CopiesStayWithinTheMemoryForFailures) {
  std::string frames;
  for (int i = 0; i < 20000; ++i)
    frames +=
        fmt::format(R"({}{{"object":"/home/u/a/path/of/some/length.so","offset":{}}})", i == 0 ? "" : ",", i);
  std::vector<std::string> refs{"\"native\":[" + frames + "]"};
  while (refs.size() < 4000) refs.emplace_back(R"("native_of":1)");
  const Report report = failures(refs);
  std::size_t filled = 0;
  for (const FailureRecord& row : report.failures) filled += row.native.empty() ? 0U : 1U;
  EXPECT_GT(filled, 1U);
  EXPECT_LT(filled, 20U);
  std::size_t kept = 0;
  for (const FailureRecord& row : report.failures) kept += weight_of<report::RecordType::failure>(row);
  EXPECT_LE(kept, limit_of(report::RecordType::failure).bytes);
  EXPECT_LE(kept, report.kept);
  EXPECT_THAT(notes_of(report), HasSubstr("and there is no room for so many: its stack is left out"));
}

TEST_F(SameStacks, ImpossibleKernelCountIsIgnored) {
  const auto gap = [](std::string_view total) {
    return fmt::format(
        R"("object":null,"offset":null,"device":0,"kernels":["k"],"total":{},"complete":false,)"
        R"("have":["sm_75"],"need":"sm_86")",
        total);
  };
  ReportText text;
  text.process().device(0, "8.6");
  for (const char* total : {"300", "18446744073709551615", "null", "\"9\""}) text.record("gap", gap(total));
  const Report report = read(text.end(0).text());
  ASSERT_THAT(report.gaps, SizeIs(4));
  EXPECT_EQ(report.gaps[0].total, 300U);
  for (const std::size_t i : {1U, 2U, 3U}) EXPECT_FALSE(report.gaps[i].total);
  EXPECT_EQ(notes_of(report),
            "4: `gap`: more kernels than a file has, their number ignored\n"
            "6: `gap`: `total` is not a whole number from 0 up\n");
}

}  // namespace
}  // namespace kshim::test

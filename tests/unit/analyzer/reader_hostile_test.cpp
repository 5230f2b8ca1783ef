// SPDX-License-Identifier: Apache-2.0
// Reports that contradict themselves or were made to harm: each is read as far as it makes sense, and what
// does not is named.
#include <gmock/gmock.h>

#include "analyzer/input/report/record_parser.h"
#include "read_report_fixture.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::string_view_literals;

TEST_F(ReadReport, ASecondProcessRecordIsNamed) {
  const Report report = read(ReportText().process().process("", 99).text());
  EXPECT_EQ(report.process.pid, 17U);
  EXPECT_EQ(notes_of(report), "2: a second `process` record, ignored\n");
}

TEST_F(ReadReport, TwoDriversThatDifferAreNamed) {
  const Report report = read(ReportText().process().driver("13.0").driver("13.0").driver("12.0").text());
  EXPECT_EQ(report.driver->cuda_version, "13.0");
  EXPECT_EQ(notes_of(report), "4: a second `driver` record, for CUDA 12.0 and not 13.0, ignored\n");
}

TEST_F(ReadReport, OneGpuWithTwoComputeCapabilitiesIsNamed) {
  const Report report =
      read(ReportText().process().device(0, "8.6").device(0, "8.6").device(0, "9.0").text());
  ASSERT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(report.devices[0].compute_capability, "8.6");
  EXPECT_EQ(notes_of(report),
            "4: GPU 0 is of compute capability 9.0 here and 8.6 in line 2: the first counts\n");
}

TEST_F(ReadReport, GpusThatDoNotExistAreNamed) {
  const Report report =
      read(ReportText().process().device(0, "9.9").device(1, "fast").device(2, "9.0a").text());
  EXPECT_EQ(notes_of(report),
            "2: GPU 0: this kshim knows no GPU of compute capability 9.9, and judges it by the number\n"
            "3: GPU 1: `fast` is no compute capability\n"
            "4: GPU 2: `9.0a` is no compute capability\n");
}

TEST_F(ReadReport, InvalidDriverVersionIsReported) {
  EXPECT_EQ(notes_of(read(ReportText().process().driver("thirteen").text())),
            "2: `thirteen` is no CUDA version of a driver\n");
}

TEST_F(ReadReport, FailuresAfterTheEndAreRead) {
  const Report report = read(ReportText().process().end(0).failure(1, "launch", 209, "k", "").text());
  EXPECT_THAT(report.failures, SizeIs(1));
  EXPECT_EQ(notes_of(report),
            "2: a record stands after it: of threads that outlived the end, or lines were moved\n"
            "3: `failure` refers to GPU 0, which is not there\n");
}

TEST_F(ReadReport, AnEndThatCountsMoreFailuresThanThereAreIsNamed) {
  EXPECT_EQ(notes_of(read(ReportText().process().end(3).text())), "2: it counts 3 failures, 0 are there\n");
}

TEST_F(ReadReport, ASecondEndIsNamed) {
  const Report report = read(ReportText().process().end(0).end(7).text());
  EXPECT_EQ(report.end->failures, 0U);
  EXPECT_THAT(notes_of(report), HasSubstr("3: a second `end` record, ignored\n"));
}

TEST_F(ReadReport, IdsThatAreThereTwiceAreNamed) {
  ReportText text;
  text.process()
      .device(0, "8.6")
      .object(1, "/a.so", {})
      .object(1, "/b.so", {})
      .module(1, "1")
      .module(1, "1", 209);
  text.failure(1, "launch", 209, "k", "").failure(1, "launch", 700, "l", "");
  const Report report = read(text.text());
  ASSERT_THAT(report.objects, SizeIs(1));
  EXPECT_EQ(report.objects[0].path, "/a.so");
  EXPECT_THAT(report.modules, SizeIs(1));
  ASSERT_THAT(report.failures, SizeIs(1));
  EXPECT_EQ(report.failures[0].kernel, "k");
  EXPECT_EQ(notes_of(report),
            "4: `object` 1 for the second time, ignored\n"
            "6: `module` 1 for the second time, ignored\n"
            "8: `failure` 1 for the second time, ignored\n");
}

TEST_F(ReadReport, ReferencesToNothingAreNamedOnceAKind) {
  ReportText text;
  text.process().device(0, "8.6").module(1, "7").module(2, "8");
  text.failure(1, "launch", 209, "k", R"("module":9,"object":7)", "cuLaunchKernel", 4);
  const Report report = read(text.text());
  EXPECT_EQ(notes_of(report),
            "3: `module` refers to object 7, which is not there (2 more like this)\n"
            "5: `failure` refers to module 9, which is not there\n"
            "5: `failure` refers to GPU 4, which is not there\n");
}

TEST_F(ReadReport, AReadOfNoFailureIsNamed) {
  const Report report = read(
      ReportText().process().record("read", R"("failure":3,"api":"cudaGetLastError","code":209)").text());
  EXPECT_THAT(report.reads, IsEmpty());
  EXPECT_EQ(notes_of(report), "2: `read` of a failure that is not there, ignored\n");
}

TEST_F(ReadReport, LinesInAnotherOrderAreNamed) {
  const Report report =
      read(ReportText().process().device(0, "8.6").module(1, "1").object(1, "/a.so", {}).text());
  EXPECT_EQ(notes_of(report),
            "3: `module` refers to object 1, which comes later: the lines are not in their order\n");
}

TEST_F(ReadReport, RecordsWhoseNumbersGoBackAreNamed) {
  const std::string second = R"({"type":"device","seq":0,"t":1,"ordinal":0,"compute_capability":"8.6"})";
  EXPECT_EQ(notes_of(read(ReportText().process().raw(second + "\n").text())),
            "the records are not in the order in which they were written, or some are there twice\n");
}

TEST_F(ReadReport, RecordsThatWereTakenOutAreNamed) {
  const std::string later = R"({"type":"device","seq":5,"t":1,"ordinal":0,"compute_capability":"8.6"})";
  EXPECT_EQ(notes_of(read(ReportText().process().raw(later + "\n").text())),
            "4 records that the shim wrote are missing, as the numbers of the others tell\n");
  const std::string end = R"({"type":"end","seq":6,"t":1,"failures":0,"modules":0,"dropped":4})";
  EXPECT_EQ(
      notes_of(read(ReportText().process().raw(later + "\n" + end + "\n").text())),
      "3: 4 records could not be written, as the shim says at the end: there was no space left, or there "
      "were more than it keeps\n")
      << "the shim counted what it could not write";
}

TEST_F(ReadReport, DuplicateKeysAreNamed) {
  const Report report = read(ReportText()
                                 .process()
                                 .raw(R"({"type":"device","type":"end","seq":1,"ordinal":0,"ordinal":1,)"
                                      R"("compute_capability":"8.6"})"
                                      "\n")
                                 .text());
  ASSERT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(report.devices[0].ordinal, 0U);
  EXPECT_EQ(
      notes_of(report),
      "2: `device`: `type` is there twice, the first counts, `ordinal` is there twice, the first counts\n");
}

TEST_F(ReadReport, NegativeAndHugeNumbersAreNamed) {
  ReportText text;
  text.process().device(0, "8.6").object(1, "/a.so", {});
  text.raw(
      R"({"type":"module","seq":3,"id":1,"object":1,"offset":-4096,"size":-1,"result":-7,"ms":-2.5,"device":0})"
      "\n");
  text.raw(R"({"type":"module","seq":4,"id":18446744073709551615,"object":1,"result":4294967296,"ms":1e300})"
           "\n");
  text.raw(R"({"type":"module","seq":5,"id":2,"object":1,"result":0,"ms":1e400})"
           "\n");
  const Report report = read(text.text());
  ASSERT_THAT(report.modules, SizeIs(2));
  EXPECT_FALSE(report.modules[0].offset.has_value());
  EXPECT_EQ(report.modules[0].ms, 0);
  EXPECT_EQ(report.modules[1].result, 0);
  EXPECT_EQ(report.modules[1].ms, 0);
  const std::string notes = notes_of(report);
  EXPECT_THAT(notes, HasSubstr("4: `module`: `offset` is not a whole number from 0 up"));
  EXPECT_THAT(notes, HasSubstr("`ms` is not a number from 0 up"));
  EXPECT_THAT(notes, HasSubstr("5: `module`: a load that took more than a week"));
  EXPECT_THAT(notes, HasSubstr("6: skipped, not valid JSON: a number that is none, or larger than can be"));
}

TEST_F(ReadReport, AProcessIdThatNoneCanHaveIsNamed) {
  const Report report = read(ReportText().process("", 4'294'967'295U, 1).text());
  EXPECT_EQ(report.process.pid, 0U);
  EXPECT_THAT(notes_of(report), HasSubstr("1: `process`: a process id that no process can have"));
}

TEST_F(ReadReport, NulBytesAreReportedAndTheRestIsRead) {
  std::string hole(5000, '\0');
  hole += R"({"type":"device","seq":1,"ordinal":0,"compute_capability":"8.6"})";
  const Report report = read(ReportText().process().raw(hole + "\n").text());
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(notes_of(report), "2: holds NUL bytes, as a crash of the machine leaves them\n");
}

TEST_F(ReadReport, AByteOrderMarkIsPassedOver) {
  EXPECT_THAT(read("\xef\xbb\xbf" + ReportText().process().text()).notes, IsEmpty());
}

TEST_F(ReadReport, WindowsLineEndsAreLineEnds) {
  std::string text = ReportText().process().device(0, "8.6").text();
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  const Report report = read(text);
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(ReadReport, OneLineOfAHundredMegabytesIsSkipped) {
  const std::string huge = "{\"type\":\"device\",\"name\":\"" + std::string(100'000'000, 'x') + "\"}\n";
  const Report report = read(ReportText().process().raw(huge).device(0, "8.6").text());
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(notes_of(report), "2: longer than 4 MiB, skipped\n");
}

TEST_F(ReadReport, AHundredMegabytesWithoutALineEndAreSkipped) {
  const Report report = read(ReportText().process().text() + std::string(100'000'000, '{'));
  EXPECT_EQ(notes_of(report), "2: longer than 4 MiB, skipped\n");
}

TEST_F(ReadReport, LongTextsAreCutBetweenLetters) {
  std::string name;
  while (name.size() <= kMaxTextLength) name += "\u00e4";
  name.insert(0, "x");
  const Report report = read(ReportText().process().device(0, "8.6", name).text());
  ASSERT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(report.devices[0].name, name.substr(0, kMaxTextLength - 1));
  EXPECT_EQ(notes_of(report), "2: `device`: a text of more than 64 KiB is cut\n");
}

TEST_F(ReadReport, MoreRecordsThanAnyShimWritesAreCounted) {
  ReportText text;
  text.process();
  const std::size_t most = limit_of(report::RecordType::failure).records;
  for (unsigned id = 0; id < most + 10; ++id) text.failure(id, "other", 2, "", "");
  text.record("repeat", fmt::format(R"("id":{},"count":5)", most + 3));
  const Report report = read(text.text());
  EXPECT_THAT(report.failures, SizeIs(most));
  EXPECT_EQ(notes_of(report),
            fmt::format("{} `failure` records are judged, 10 more are left out: so many are in no "
                        "report of a shim\n",
                        most));
}

TEST_F(ReadReport, WhatIsKeptIsBoundedInBytes) {
  ReportText text;
  text.process();
  const std::string name(kMaxTextLength, 'k');
  for (unsigned id = 0; id < 2000; ++id) text.record("coverage", fmt::format(R"("kernel":"{}{}")", id, name));
  const Report report = read(text.text());
  EXPECT_LE(report.kept, limit_of(report::RecordType::coverage).bytes + (1U << 20));
  EXPECT_THAT(notes_of(report), HasSubstr("more are left out"));
}

TEST_F(ReadReport, NamesWhatIsCompressedOrNoReport) {
  EXPECT_THAT(refusal("\x1f\x8b\x08\0\0\0\0\0"sv),
              HasSubstr("compressed with gzip: unpack it first (gunzip)"));
  EXPECT_THAT(refusal("\x28\xb5\x2f\xfd\x24\0"sv), HasSubstr("compressed with zstd"));
  EXPECT_THAT(refusal("\xfd"
                      "7zXZ\0\0"sv),
              HasSubstr("compressed with xz"));
  EXPECT_THAT(refusal("BZh91AY&SY"), HasSubstr("compressed with bzip2"));
  EXPECT_THAT(refusal("\x04\x22\x4d\x18"), HasSubstr("compressed with lz4"));
  EXPECT_THAT(refusal("PK\x03\x04"), HasSubstr("zip archive"));
  EXPECT_THAT(refusal("\xff\xfe{\0\"\0"sv), HasSubstr("UTF-16"));
  EXPECT_THAT(refusal("\x7f"
                      "ELF\2\1"),
              HasSubstr("kshim scan"));
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(refusal(tar), HasSubstr("tar archive"));
  EXPECT_THAT(refusal("{\n  \"schema\": \"kshim-analysis/1\",\n"),
              HasSubstr("what kshim wrote (kshim-analysis)"));
  EXPECT_THAT(refusal("{\n  \"schema\": \"kshim-scan/1\",\n"), HasSubstr("what kshim wrote (kshim-scan)"));
}

TEST_F(ReadReport, TheFirstLineMustBeTheProcess) {
  const std::string process = ReportText().process().text();
  EXPECT_THAT(refusal(process.substr(0, process.size() / 2)), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal("\n" + ReportText().driver().text()), HasSubstr("is not a kshim report"));
  EXPECT_EQ(refusal("\n\n" + process), "it was read");
}

}  // namespace
}  // namespace kshim::test

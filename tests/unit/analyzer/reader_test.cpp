// SPDX-License-Identifier: Apache-2.0
// Reports as a dying process or a stranger may leave them.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "read_report_fixture.h"

namespace kshim::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(ReadReport, TakesEveryRecordWithItsLine) {
  ReportText text;
  text.process(R"("CUDA_FORCE_PTX_JIT":"1")")
      .driver()
      .device(0, "6.1", "GTX 1080")
      .object(1, "/a.so", {"sm_75", "compute_75:9.0"});
  text.module(3, "1", 209).failure(7, "lookup", 209, "_Z1kv", R"("module":3,"object":1)");
  text.record("repeat", R"("id":7,"count":2)").record("repeat", R"("id":7,"count":10)");
  text.record(
      "gap",
      R"("object":1,"offset":4096,"device":0,"kernels":["_Z1kv"],"complete":false,"have":["sm_75"],"need":"sm_61")");
  text.record("library", R"("soname":"libcudart.so.13","path":"/l/libcudart.so.13","version":"13.0.96")");
  text.record("package", R"("object":1,"name":"torch","version":"2.9.1","manager":"pip")").end();
  const Report report = read(text.text());
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_EQ(report.process.pid, 17U);
  EXPECT_EQ(report.process.env.at("CUDA_FORCE_PTX_JIT"), "1");
  EXPECT_EQ(report.driver->cuda_version, "13.0");
  ASSERT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(report.devices[0].name, "GTX 1080");
  EXPECT_EQ(report.devices[0].line, 3U);
  ASSERT_THAT(report.objects, SizeIs(1));
  ASSERT_THAT(report.objects[0].images.value(), SizeIs(2));
  EXPECT_EQ(report.objects[0].images->at(1).isa, "9.0");
  ASSERT_THAT(report.modules, SizeIs(1));
  EXPECT_EQ(report.modules[0].offset, 4096U);
  EXPECT_EQ(report.modules[0].result, 209);
  ASSERT_THAT(report.failures, SizeIs(1));
  EXPECT_EQ(report.failures[0].kernel, "_Z1kv");
  EXPECT_EQ(report.failures[0].layers.at(0).code, 209);
  EXPECT_EQ(report.failures[0].count, 10U);
  EXPECT_EQ(report.failures[0].line, 6U);
  ASSERT_THAT(report.gaps, SizeIs(1));
  EXPECT_THAT(report.gaps[0].have, ElementsAre("sm_75"));
  EXPECT_EQ(report.libraries.at(0).version, "13.0.96");
  EXPECT_EQ(report.packages.at(0).name, "torch");
  EXPECT_EQ(report.end->failures, 1U);
}

TEST_F(ReadReport, ATornLastLineIsANote) {
  std::string bytes = ReportText().process().driver().text();
  bytes += R"({"type":"failure","seq":2,"id":1,"stage":"lau)";
  const Report report = read(bytes);
  EXPECT_TRUE(report.driver.has_value());
  EXPECT_THAT(report.failures, IsEmpty());
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.notes[0].line, 3U);
  EXPECT_THAT(report.notes[0].text, HasSubstr("the last line is torn"));
}

TEST_F(ReadReport, ALastLineWithoutNewlineIsWhole) {
  std::string bytes = ReportText().process().device(0, "8.6").text();
  bytes.pop_back();
  const Report report = read(bytes);
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(ReadReport, ABrokenLineInTheMiddleIsSkipped) {
  const Report report = read(ReportText().process().raw("{\"type\":\"device\",,}\n").device(0, "8.6").text());
  EXPECT_THAT(report.devices, SizeIs(1));
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.notes[0].line, 2U);
  EXPECT_THAT(report.notes[0].text, HasSubstr("skipped, not valid JSON"));
}

TEST_F(ReadReport, ALineLongerThanAnyRecordIsSkippedAndTheNextIsRead) {
  const std::string huge =
      "{\"type\":\"device\",\"name\":\"" + std::string(kMaxLineLength + (2U << 20), 'x') + "\"}\n";
  const Report report = read(ReportText().process().raw(huge).device(0, "8.6").text());
  EXPECT_THAT(report.devices, SizeIs(1));
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_EQ(report.notes[0].line, 2U);
  EXPECT_THAT(report.notes[0].text, HasSubstr("longer than 4 MiB, skipped"));
  EXPECT_EQ(report.devices[0].line, 3U);
}

TEST_F(ReadReport, ALongLineAcrossReadsIsWhole) {
  std::string names;
  for (int i = 0; i < 100'000; ++i) names += fmt::format("{}\"_Z{}kernel\"", i == 0 ? "" : ",", i);
  ASSERT_GT(names.size(), 1U << 20) << "longer than what is read at once";
  const Report report = read(
      ReportText()
          .process()
          .record("gap", fmt::format(R"("kernels":[{}],"complete":true,"have":[],"need":"sm_75")", names))
          .end(0)
          .text());
  ASSERT_THAT(report.gaps, SizeIs(1));
  EXPECT_EQ(report.gaps[0].kernels.back(), fmt::format("_Z{}kernel", kMaxElements - 1));
  EXPECT_TRUE(report.end.has_value());
}

TEST_F(ReadReport, FieldsOfWrongTypesAreAbsent) {
  ReportText text;
  text.process().record("driver", R"("path":7,"cuda_version":[13],"kernel_module":{},"simulated":"yes")");
  text.record("device", R"("ordinal":0,"name":null,"compute_capability":8.6)")
      .record("device", R"("ordinal":-1)");
  text.record("device", R"("ordinal":99999999999999999999)");
  text.record("object", R"("id":1,"path":false,"fatbins":"two","images":{"kind":"cubin"})");
  text.record(
      "failure",
      R"("id":1,"stage":3,"layers":[1,{"code":"209"},[]],"native":"none","python":[null],"kernel":{})");
  text.record("gap", R"("object":"1","kernels":[1,2,"k"],"have":"sm_75","complete":1,"need":null)");
  const Report report = read(text.text());
  EXPECT_EQ(report.driver->cuda_version, "");
  EXPECT_FALSE(report.driver->simulated);
  ASSERT_THAT(report.devices, SizeIs(1)) << "a device needs its ordinal";
  EXPECT_EQ(report.devices[0].compute_capability, "");
  ASSERT_THAT(report.objects, SizeIs(1));
  EXPECT_FALSE(report.objects[0].fatbins.has_value());
  EXPECT_FALSE(report.objects[0].images.has_value());
  ASSERT_THAT(report.failures, SizeIs(1));
  EXPECT_THAT(report.failures[0].layers, IsEmpty()) << "a layer that says nothing is none";
  EXPECT_THAT(report.failures[0].python, IsEmpty());
  ASSERT_THAT(report.gaps, SizeIs(1));
  EXPECT_THAT(report.gaps[0].kernels, ElementsAre("k"));
  EXPECT_FALSE(report.gaps[0].object.has_value());
  const std::string notes = notes_of(report);
  EXPECT_THAT(notes, HasSubstr("2: `driver`: `path` is not a text, `cuda_version` is not a text"));
  EXPECT_THAT(notes, HasSubstr("`simulated` is not true or false"));
  EXPECT_THAT(
      notes,
      HasSubstr(
          "4: `device` without `ordinal`, ignored (`device`: `ordinal` is not a whole number from 0 up)"));
  EXPECT_THAT(notes, HasSubstr("6: `object`: `path` is not a text, `fatbins` is not a whole number from 0 "
                               "up, `images` is not a list"));
}

TEST_F(ReadReport, NulBytesDoNotEndALine) {
  std::string middle = R"({"type":"device","ordinal":1,"name":"a)";
  middle += '\0';
  middle += "b\"}\n";
  const Report report =
      read(ReportText().process().raw(middle).raw(std::string(64, '\0') + "\n").device(0, "8.6").text());
  ASSERT_THAT(report.devices, SizeIs(1)) << "a NUL inside a string is not JSON";
  EXPECT_EQ(report.devices[0].line, 4U);
  EXPECT_EQ(notes_of(report),
            "2: skipped, not valid JSON: a control character in a text\n"
            "3: holds NUL bytes, as a crash of the machine leaves them\n"
            "a record that the shim wrote is missing, as the numbers of the others tell\n");
}

TEST_F(ReadReport, BytesThatAreNotUtf8AreReplaced) {
  const Report report = read(ReportText()
                                 .process()
                                 .raw("{\"type\":\"device\",\"seq\":1,\"ordinal\":1,\"name\":\"a\xff\xfez\","
                                      "\"compute_capability\":\"8.6\"}\n")
                                 .text());
  ASSERT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(report.devices[0].name, "a\ufffd\ufffdz");
  EXPECT_EQ(notes_of(report), "2: is not UTF-8 in places, which were replaced\n");
}

TEST_F(ReadReport, EscapesOfHalfACharacterAreReplaced) {
  const Report report = read(
      ReportText()
          .process()
          .raw(R"({"type":"device","seq":1,"ordinal":1,"name":"\ud800 \udc00\ud83d\ude00\\ud800 \u00e9\ud8",)"
               R"("compute_capability":"8.6"})"
               "\n")
          .raw(
              R"({"type":"device","seq":1,"ordinal":2,"name":"\ud800 \udc00\ud83d\ude00\\ud800 \u00e9\ud83d",)"
              R"("compute_capability":"8.6"})"
              "\n")
          .text());
  ASSERT_THAT(report.devices, SizeIs(1)) << "an escape of two digits is none";
  EXPECT_EQ(report.devices[0].name, "\ufffd \ufffd\U0001f600\\ud800 \u00e9\ufffd");
}

TEST_F(ReadReport, DeepNestingIsRefusedByLineNotByStack) {
  const std::string deep =
      "{\"type\":\"device\",\"x\":" + std::string(200000, '[') + std::string(200000, ']') + "}\n";
  const Report report = read(ReportText().process().raw(deep).device(0, "8.6").text());
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_EQ(notes_of(report), "2: skipped, not valid JSON: nested too deeply\n");
}

TEST_F(ReadReport, ManyBrokenLinesMakeFewNotes) {
  ReportText text;
  text.process();
  for (int i = 0; i < 1000; ++i) text.raw("nonsense\n");
  const Report report = read(text.text());
  EXPECT_EQ(notes_of(report), "2: skipped, not valid JSON (999 more lines like this)\n");
}

TEST_F(ReadReport, RecordsAndFieldsOfLaterVersionsAreIgnored) {
  ReportText text;
  text.process()
      .record("telepathy", R"("thought":1)")
      .record("device", R"("ordinal":0,"compute_capability":"8.6","mood":"good")");
  const Report report = read(text.text());
  EXPECT_THAT(report.devices, SizeIs(1));
  EXPECT_THAT(report.notes, IsEmpty());
}

TEST_F(ReadReport, ARepeatOfNothingIsANote) {
  const Report report = read(ReportText().process().record("repeat", R"("id":4,"count":2)").text());
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_THAT(report.notes[0].text, HasSubstr("`repeat` of a failure that is not there"));
}

TEST_F(ReadReport, SaysWhyAFileIsNoReport) {
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_THAT(refusal("\n\n"), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal("hello\n"), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal("{\"a\":1}\n"), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal("[1,2]\n"), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal(ReportText().device(0, "8.6").text()), HasSubstr("is not a kshim report"));
  EXPECT_THAT(refusal(std::string("\x7f\x45LF\0\0", 6)), HasSubstr("is a program or library"));
  EXPECT_THAT(refusal("{\"type\":\"process\",\"schema\":\"kshim-report/2\"}\n"),
              HasSubstr("is of schema kshim-report/2, this kshim reads kshim-report/1"));
}

TEST_F(ReadReport, SaysWhyAPathCannotBeRead) {
  const auto why = [](const std::filesystem::path& path) { return std::get<std::string>(read_report(path)); };
  EXPECT_THAT(why(folder_.path() / "none.jsonl"), HasSubstr("no longer there"));
  EXPECT_EQ(why(folder_.path()), "is a folder");
  const std::filesystem::path fifo = folder_.path() / "fifo.jsonl";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(why(fifo), "is not a regular file") << "and it did not wait for a writer";
}

}  // namespace
}  // namespace kshim::test

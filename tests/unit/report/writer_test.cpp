// SPDX-License-Identifier: Apache-2.0
#include "kshim/report/writer.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace kshim::report {
namespace {

std::string json_string(std::string_view value, std::size_t limit = kStringLimit) {
  std::array<char, 4096> storage{};
  JsonBuffer out(storage);
  out.string(value, Content::text, limit);
  return out.full() ? "full" : std::string(out.view());
}

TEST(JsonString, EscapesWhatJsonAndTerminalsTakeForThemselves) {
  EXPECT_EQ(json_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_string("\n\t\x1b\x7f"), R"("\u000a\u0009\u001b\u007f")");
  EXPECT_EQ(json_string(std::string_view("a\0b", 3)), R"("a\u0000b")");
  EXPECT_EQ(json_string("größe 日本 🐍"), "\"größe 日本 🐍\"");
}

TEST(JsonString, WritesEveryByteThatIsNotUtf8AsReplacement) {
  EXPECT_EQ(json_string("\xff"), R"("\ufffd")");
  EXPECT_EQ(json_string("\xc0\xaf"), R"("\ufffd\ufffd")") << "overlong slash";
  EXPECT_EQ(json_string("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")") << "surrogate";
  EXPECT_EQ(json_string("\xf4\x90\x80\x80"), R"("\ufffd\ufffd\ufffd\ufffd")") << "above U+10FFFF";
  EXPECT_EQ(json_string("a\xe2\x82"), R"("a\ufffd\ufffd")") << "cut off";
}

TEST(JsonString, CutsAtWholeCharacters) {
  EXPECT_EQ(json_string("abcdef", 3), R"("abc...")");
  EXPECT_EQ(json_string("aü", 2), R"("a...")");
  EXPECT_EQ(json_string("aü", 3), "\"aü\"");
}

TEST(JsonString, WithoutDataIsNull) { EXPECT_EQ(json_string(std::string_view()), "null"); }

TEST(JsonNumber, KeepsMicroseconds) {
  std::array<char, 64> storage{};
  JsonBuffer out(storage);
  out.milliseconds({12'345'678});
  out.text(" ");
  out.milliseconds({999});
  out.text(" ");
  out.number(~std::uint64_t{0});
  EXPECT_EQ(out.view(), "12.345 0.000 18446744073709551615");
}

using RepeatRecord = Record<RecordType::repeat>;

TEST(Record, BeginsWithTypeAndEndsWithNewline) {
  std::array<char, 256> storage{};
  RepeatRecord record(storage, 7, 42);
  record.add<Field::repeat_id>(std::uint64_t{1}).add<Field::repeat_count>(std::uint64_t{10});
  EXPECT_EQ(record.finish(), "{\"type\":\"repeat\",\"seq\":7,\"t\":42,\"id\":1,\"count\":10}\n");
}

TEST(Record, IsAllOrNothing) {
  constexpr std::string_view kLine = "{\"type\":\"repeat\",\"seq\":7,\"t\":42,\"id\":1,\"count\":10}\n";
  std::array<char, 64> storage{};
  for (std::size_t size = 0; size < storage.size(); ++size) {
    RepeatRecord record(std::span<char>(storage).first(size), 7, 42);
    record.add<Field::repeat_id>(std::uint64_t{1}).add<Field::repeat_count>(std::uint64_t{10});
    const std::string_view line = record.finish();
    EXPECT_EQ(line, size < kLine.size() ? std::string_view() : kLine) << size;
  }
}

TEST(Record, LongListsLeaveRoomForTheFieldsBehind) {
  std::array<char, 8192> storage{};
  const std::string name(700, 'k');
  std::array<std::string_view, 50> kernels;
  kernels.fill(name);
  const std::array<std::string_view, 1> have{"sm_75"};
  Record<RecordType::gap> record(storage, 0, 0);
  record.null<Field::gap_object>().null<Field::gap_offset>().null<Field::gap_device>();
  record.add<Field::gap_kernels>(std::span<const std::string_view>(kernels));
  record.add<Field::gap_complete>(false);
  record.add<Field::gap_have>(std::span<const std::string_view>(have));
  record.add<Field::gap_need>("sm_61");
  const std::string line(record.finish());
  EXPECT_NE(line.find("],\"complete\":false,\"have\":["), std::string::npos) << line.substr(line.size() - 80);
  EXPECT_NE(line.find("\"need\":\"sm_61\"}\n"), std::string::npos);
  std::size_t written = 0;
  for (std::size_t at = line.find(name); at != std::string::npos; at = line.find(name, at + 1)) ++written;
  EXPECT_EQ(written, 5U) << "8192 bytes less the 4096 of the tail";
}

TEST(Record, PythonLineZeroIsUnknown) {
  std::array<char, 256> storage{};
  JsonBuffer out(storage);
  write_element(out, PythonRow{"a.py", 0, "f"});
  write_element(out, PythonRow{"a.py", 3, "f"});
  EXPECT_EQ(out.view(),
            R"({"file":"a.py","line":null,"function":"f"}{"file":"a.py","line":3,"function":"f"})");
}

}  // namespace
}  // namespace kshim::report

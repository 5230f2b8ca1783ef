// SPDX-License-Identifier: Apache-2.0
// Logs in the encodings that Windows writes, and files that are no logs.
#include "analyzer/input/log/log_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

std::string utf16(const std::u16string& text, bool big) {
  std::string out;
  for (const char16_t unit : text) {
    const char low = static_cast<char>(unit & 0xff);
    const char high = static_cast<char>(unit >> 8);
    out += big ? high : low;
    out += big ? low : high;
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& bytes, std::size_t piece = 1U << 20U) {
  std::vector<std::string> out;
  LogText text([&](std::string_view line) { out.emplace_back(line); });
  // The first bytes tell what it is, so they come in one piece, as from a file.
  const std::size_t head = std::min<std::size_t>(bytes.size(), 20);
  text.take(std::string_view(bytes).substr(0, head));
  for (std::size_t at = head; at < bytes.size(); at += piece)
    text.take(std::string_view(bytes).substr(at, piece));
  text.finish();
  return out;
}

const std::u16string kText = u"RuntimeError: CUDA\nJ\u00f6rg \u20ac \U0001F600\nend";
const std::vector<std::string> kLines = {"RuntimeError: CUDA", "J\xc3\xb6rg \xe2\x82\xac \xf0\x9f\x98\x80",
                                         "end"};

TEST(LogText, Utf16OfBothOrdersWithAndWithoutAMark) {
  for (const bool big : {false, true}) {
    for (const bool mark : {false, true}) {
      const std::string bytes = utf16((mark ? u"\ufeff" : u"") + kText, big);
      // Also cut in the middle of a unit, and of a pair.
      for (const std::size_t piece : {std::size_t{1}, std::size_t{3}, std::size_t{4096}})
        EXPECT_EQ(lines_of(bytes, piece), kLines) << big << mark << piece;
    }
  }
}

TEST(LogText, HalfCharactersAreNoneAndHarmNothing) {
  const std::string lone = utf16(u"\ufeffab", false) + std::string("\x00\xd8", 2) + utf16(u"c\n", false);
  EXPECT_EQ(lines_of(lone), std::vector<std::string>{"ab\xef\xbf\xbd"
                                                     "c"});
  EXPECT_EQ(lines_of(utf16(u"\ufeffabcdefghijk", false) + "x"), std::vector<std::string>{"abcdefghijk"});
}

TEST(LogText, BytesStayBytes) {
  EXPECT_EQ(lines_of("a\r\nb\n\nc"), (std::vector<std::string>{"a\r", "b", "", "c"}));
  EXPECT_EQ(lines_of("a line\ra second one\rlast"),
            (std::vector<std::string>{"a line", "a second one", "last"}));
  EXPECT_EQ(lines_of("\xef\xbb\xbfsaved"), std::vector<std::string>{"saved"});
  // Cut while it was written to: zeros on both sides.
  EXPECT_EQ(lines_of(std::string(64, '\0') + "\nCUDA error 209\n").back(), "CUDA error 209");
  EXPECT_TRUE(lines_of("").empty());
}

TEST(LogText, WhatIsNoLogIsRefused) {
  for (const std::string& bytes : {std::string("\x1f\x8b\x08"),
                                   std::string("\x7f"
                                               "ELF\x02\x01"),
                                   std::string("PK\x03\x04xxxx"), std::string("\x28\xb5\x2f\xfd")})
    EXPECT_THROW(lines_of(bytes), NotALog);
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>(i * 7 % 29);
  LogText text([](std::string_view) {});
  EXPECT_THROW(text.take(noise), NotALog);
  LogText pasted([](std::string_view) {}, true);
  EXPECT_NO_THROW(pasted.take("BZh is what I saw"));
}

}  // namespace
}  // namespace kshim::test

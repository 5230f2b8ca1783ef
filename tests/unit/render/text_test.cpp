// SPDX-License-Identifier: Apache-2.0
#include "analyzer/core/text.h"

#include <gtest/gtest.h>

#include <chrono>

#include "analyzer/render/document.h"
#include "analyzer/render/finding_page.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

TEST(Sentence, BeginsWithACapitalUnlessANameDoes) {
  const std::pair<const char*, const char*> rows[] = {
      {"the driver is older", "The driver is older."},
      {"cuDNN: parts of two releases", "cuDNN: parts of two releases."},
      {"libcuda is a stub", "libcuda is a stub."},
      {"libnvidia-ptxjitcompiler.so.1 is not there!", "libnvidia-ptxjitcompiler.so.1 is not there!"},
      {"nvcc, of CUDA 12", "nvcc, of CUDA 12."},
      {"user's own", "User's own."},
      {"sm_61", "sm_61."},
      {"", ""}};
  for (const auto& [text, sentence] : rows) EXPECT_EQ(as_sentence(text), sentence);
}

TEST(Harmless, KeepsOrdinaryText) {
  EXPECT_EQ(sanitize("saxpy<float>(int, float*) ~!@#"), "saxpy<float>(int, float*) ~!@#");
  EXPECT_EQ(sanitize("/home/j\u00fcrgen/\u6a21\u578b.py"), "/home/j\u00fcrgen/\u6a21\u578b.py");
  EXPECT_EQ(sanitize("\U0001F600"), "\U0001F600");
}

TEST(Harmless, ReplacesControls) {
  EXPECT_EQ(sanitize("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(sanitize("a\r\n\tb\x7f"), "a???b?");
  EXPECT_EQ(sanitize(std::string_view("a\0b", 3)), "a?b");
}

// C1 controls are escape sequences of one character: U+009B is CSI.
TEST(Harmless, ReplacesEightBitControls) {
  EXPECT_EQ(sanitize("a\u009b31mb"), "a?31mb");
  EXPECT_EQ(sanitize("a\x9b"
                     "31mb"),
            "a?31mb");
}

TEST(Harmless, ReplacesWhatTurnsTheDirectionOrIsInvisible) {
  EXPECT_EQ(sanitize("a\u202eb"), "a?b");
  EXPECT_EQ(sanitize("a\u2066b\u2069"), "a?b?");
  EXPECT_EQ(sanitize("a\u200bb\ufeff"), "a?b?");
  EXPECT_EQ(sanitize("a\u3164b\u115fc\uffa0\u034f"), "a?b?c??");
  EXPECT_EQ(sanitize("co\u00adop \u2764\ufe0f"), "co\u00adop \u2764\ufe0f");
  EXPECT_EQ(sanitize("a\U000E0041"), "a?");
}

// A decoder that trusts the lead byte takes the escape character for its continuation and lets it through.
TEST(Harmless, DoesNotSwallowAnEscapeBehindATornSequence) {
  EXPECT_EQ(sanitize("\xe2\x1b[31m"), "??[31m");
  EXPECT_EQ(sanitize("\xf0\x9f\x1b[2J"), "???[2J");
  EXPECT_EQ(sanitize("\xc3"), "?");
}

TEST(Harmless, RefusesOverlongFormsAndSurrogates) {
  EXPECT_EQ(sanitize("\xc0\x9b"), "??");
  EXPECT_EQ(sanitize("\xe0\x80\x9b"), "???");
  EXPECT_EQ(sanitize("\xed\xa0\x80"), "???");
  EXPECT_EQ(sanitize("\xf5\x80\x80\x80"), "????");
}

// XML 1.0 has no way to write the first two.
TEST(Harmless, ReplacesWhatIsNoCharacter) {
  EXPECT_EQ(sanitize("a\ufffeb\uffffc"), "a?b?c");
  EXPECT_EQ(sanitize("\ufdd0\ufdef\U0001FFFE\U0010FFFF"), "????");
  EXPECT_EQ(sanitize("\ufffd\ufdf0\ufdcf"), "\ufffd\ufdf0\ufdcf");
}

TEST(Ascii, ReplacesEachCharacterOnce) { EXPECT_EQ(ascii("j\u00fcrgen \u6a21\u578b \x1b"), "j?rgen ?? ?"); }

TEST(Demangle, SaysWhatTheSourceSays) {
  EXPECT_EQ(demangle("_Z5scalePfi"), "scale(float*, int)");
  EXPECT_EQ(demangle("scale"), "scale");
  EXPECT_EQ(demangle("_Z"), "_Z");
  EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
}

// f(A<int, int>, A<T1, T1>, A<T2, T2> ...): each argument is twice the one before.
std::string bomb(unsigned arguments) {
  const auto reference = [](unsigned number) {
    constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return number == 0 ? std::string("S_") : std::string("S") + kDigits.at(number - 1) + '_';
  };
  std::string symbol = "_Z1f1AIiiE";
  for (unsigned i = 1; i <= arguments; ++i) symbol += "S_I" + reference(i) + reference(i) + "E";
  return symbol;
}

TEST(Demangle, WhatGrowsWithoutBoundStaysMangled) {
  EXPECT_EQ(demangle(bomb(2)),
            "f(A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, A<int, int> >, A<A<int, int>, "
            "A<int, int> > >)");
  if (KSHIM_BOUNDED_DEMANGLE == 0) GTEST_SKIP() << "no libstdc++.a";
  EXPECT_EQ(demangle(bomb(17)), bomb(17));  // 4 MB
  EXPECT_EQ(demangle(bomb(36)), bomb(36));  // 2 TB
}

TEST(Shorten, DropsTheReturnTypeAndDefaultNoise) {
  EXPECT_EQ(shorten("void saxpy<float>(int, float*)", 80), "saxpy<float>(int, float*)");
  EXPECT_EQ(shorten("(anonymous namespace)::k(int)", 80), "k(int)");
}

TEST(Shorten, FoldsParametersBeforeTemplateArguments) {
  EXPECT_EQ(shorten("void f<float>(std::array<char*, 1ul>, int, int)", 20), "f<float>(...)");
}

TEST(Shorten, FoldsInnerTemplateArgumentsBeforeOuterOnes) {
  EXPECT_EQ(shorten("void f<A<int, int, int, int>, double>(int, int, int)", 30), "f<A<...>, double>(...)");
  EXPECT_EQ(shorten("void f<A<int, int, int, int>, double>(int, int, int)", 16), "f<...>(...)");
}

TEST(Shorten, FoldsTheLongestGroupsFirstAndNoMoreThanItMust) {
  EXPECT_EQ(shorten("f<A<int, int, int>, B<int, int, int, int, int>, C<int, int, int>, bool>", 60),
            "f<A<int, int, int>, B<...>, C<int, int, int>, bool>");
  EXPECT_EQ(shorten("f<A<int, int, int>, B<int, int, int, int, int>, C<int, int, int>, bool>", 45),
            "f<A<...>, B<...>, C<int, int, int>, bool>");
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(shorten("\u0436\u0436\u0436\u0436", 6), "\u0436...");
  const std::string cut = shorten(std::string("x\u0436\u0436\u0436\u0436"), 7);
  EXPECT_EQ(sanitize(cut), cut);
}

std::string repeated(std::string_view what, std::size_t size) {
  std::string out;
  while (out.size() < size) out += what;
  return out;
}

// Each took minutes when a fold or a replacement moved all of the text.
TEST(Shorten, TakesNoLongerThanTheTextIs) {
  constexpr std::size_t kSize = 1'000'000;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string_view part : {"<", "(", "<<>>", "<aaaaaaaaaaaa>", "(aaaaaaaaaaaa)", "<->", "([)",
                                      "<(>", "unsigned int ", " >", "(anonymous namespace)::"}) {
    EXPECT_LE(shorten(repeated(part, kSize), 60).size(), 60U) << part;
  }
  const std::string deep = repeated("<", kSize) + repeated(">", kSize);
  EXPECT_EQ(shorten(deep, 60), "<<...>>");
  EXPECT_EQ(shorten("f<" + repeated("<aaaaaaaaaaaa>", kSize) + ">", 60), "f<...>");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(Shorten, NeverExceedsTheWidth) {
  const std::string longest(300, 'x');
  EXPECT_EQ(columns(shorten(longest, 40)), 40U);
}

TEST(BaseName, IsTheNameInTheSource) {
  EXPECT_EQ(base_name("scale"), "scale");
  EXPECT_EQ(base_name("scale(float*)"), "scale");
  EXPECT_EQ(base_name("void scale<float, A<int> >(float*, unsigned int)"), "scale");
  EXPECT_EQ(base_name("a::b<int>::scale(float*)"), "scale");
  EXPECT_EQ(base_name("void (anonymous namespace)::scale<(anonymous namespace)::A>(float*)"), "scale");
}

TEST(Escape, MarkupIsTextInContentAndAttributes) {
  EXPECT_EQ(escape_markup("a<b> &amp; \"c\" 'd'"), "a&lt;b&gt; &amp;amp; &quot;c&quot; &#39;d&#39;");
}

TEST(Escape, UrisArePercentEncoded) {
  EXPECT_EQ(file_uri("/a b/\u00fc#?%.so"), "file:///a%20b/%C3%BC%23%3F%25.so");
  EXPECT_EQ(file_uri("a:b/c"), "a%3Ab/c");
  EXPECT_EQ(file_uri("\xff"), "%FF");
}

TEST(Fill, IndentsFurtherLines) { EXPECT_EQ(fill("aaa bbb ccc", 9, 2), "aaa bbb\n  ccc"); }

TEST(ShellQuote, KeepsPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_quote("build/a.out"), "build/a.out");
  EXPECT_EQ(shell_quote("$(here)"), "'$(here)'");
  for (const char* word : {"it's", "a\\", "\u2019", "\u201b", "a\nb", "\x7f"})
    EXPECT_EQ(shell_quote(word), std::string(1, kNoShellWord)) << word;
  EXPECT_EQ(shell_quote(""), "''");
}

// What the runner does: trims all blanks of Unicode, then looks for `::` at the begin and `##[` anywhere.
TEST(NoCommand, TheRunnerFindsNone) {
  EXPECT_EQ(no_command("::error::x"), ": :error::x");
  EXPECT_EQ(no_command("  \t::error::x"), "  \t: :error::x");
  EXPECT_EQ(no_command("\u00a0\u3000::error::x"), "\u00a0\u3000: :error::x");
  EXPECT_EQ(no_command("a ##[error]##[add-mask]"), "a ## [error]## [add-mask]");
  EXPECT_EQ(no_command("###[x]"), "### [x]");
  for (const char* kept : {"", " ", "at::native::f", "a ::b", "# x", "## x", ":", "#["})
    EXPECT_EQ(no_command(kept), kept);
}

TEST(NoCommand, NoLineOfAPageIsOne) {
  const std::string evil = "::error::x " + std::string(50, 'w') + " ::stop-commands::y ##[add-mask]z";
  const auto page_made = text_page({.unicode = true, .width = 60});
  Document& page = *page_made;
  page.paragraph({{evil}}, 2);
  page.facts({{"file", {{evil}}}});
  page.heading(3, {{evil}});
  page.commands({evil});
  page.say(Tone::error, "error:", evil);
  const std::string text = page.take();
  std::size_t lines = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++lines)
    EXPECT_NE(text.substr(text.find_first_not_of(' ', at), 2), "::") << text;
  EXPECT_GT(lines, 8U);
  EXPECT_EQ(text.find("##["), std::string::npos);
  for (const char* wrapped : {"  : :stop-commands", "\n: :error", ": :stop-commands::y ## [add-mask]"})
    EXPECT_NE(text.find(wrapped), std::string::npos) << wrapped << text;
}

}  // namespace
}  // namespace kshim::test

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/text.h"

#include <gtest/gtest.h>

namespace kshim::analysis {
namespace {

TEST(Harmless, KeepsOrdinaryText) {
  EXPECT_EQ(harmless("saxpy<float>(int, float*) ~!@#"), "saxpy<float>(int, float*) ~!@#");
  EXPECT_EQ(harmless("/home/j\u00fcrgen/\u6a21\u578b.py"), "/home/j\u00fcrgen/\u6a21\u578b.py");
  EXPECT_EQ(harmless("\U0001F600"), "\U0001F600");
}

TEST(Harmless, ReplacesControls) {
  EXPECT_EQ(harmless("a\x1b[31mb"), "a?[31mb");
  EXPECT_EQ(harmless("a\r\n\tb\x7f"), "a???b?");
  EXPECT_EQ(harmless(std::string_view("a\0b", 3)), "a?b");
}

// C1 controls are escape sequences of one character: U+009B is CSI.
TEST(Harmless, ReplacesEightBitControls) {
  EXPECT_EQ(harmless("a\u009b31mb"), "a?31mb");
  EXPECT_EQ(harmless("a\x9b"
                     "31mb"),
            "a?31mb");
}

TEST(Harmless, ReplacesWhatTurnsTheDirectionOrIsInvisible) {
  EXPECT_EQ(harmless("a\u202eb"), "a?b");
  EXPECT_EQ(harmless("a\u2066b\u2069"), "a?b?");
  EXPECT_EQ(harmless("a\u200bb\ufeff"), "a?b?");
  EXPECT_EQ(harmless("a\U000E0041"), "a?");
}

// A decoder that trusts the lead byte takes the escape character for its continuation and lets it through.
TEST(Harmless, DoesNotSwallowAnEscapeBehindATornSequence) {
  EXPECT_EQ(harmless("\xe2\x1b[31m"), "??[31m");
  EXPECT_EQ(harmless("\xf0\x9f\x1b[2J"), "???[2J");
  EXPECT_EQ(harmless("\xc3"), "?");
}

TEST(Harmless, RefusesOverlongFormsAndSurrogates) {
  EXPECT_EQ(harmless("\xc0\x9b"), "??");
  EXPECT_EQ(harmless("\xe0\x80\x9b"), "???");
  EXPECT_EQ(harmless("\xed\xa0\x80"), "???");
  EXPECT_EQ(harmless("\xf5\x80\x80\x80"), "????");
}

TEST(Ascii, ReplacesEachCharacterOnce) { EXPECT_EQ(ascii("j\u00fcrgen \u6a21\u578b \x1b"), "j?rgen ?? ?"); }

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

TEST(Fill, IndentsFurtherLines) { EXPECT_EQ(fill("aaa bbb ccc", 9, 2), "aaa bbb\n  ccc"); }

TEST(ShellQuote, KeepsPlainWordsAndQuotesTheRest) {
  EXPECT_EQ(shell_quote("build/a.out"), "build/a.out");
  EXPECT_EQ(shell_quote("it's $(here)"), "'it'\\''s $(here)'");
  EXPECT_EQ(shell_quote(""), "''");
}

}  // namespace
}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// What is printed over several lines must be, to a shell, the command it was.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>

#include "analyzer/core/text.h"
#include "analyzer/render/document.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

// What a real shell makes of `script`: each word it passes on, on a line.
std::string words_by_shell(const std::string& script) {
  const std::string defined = "show() { printf '%s\\n' \"$@\"; }\nshow " + script;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(defined.c_str(), "r"), pclose);  // by sh
  std::string out;
  for (int c = std::fgetc(pipe.get()); c != EOF; c = std::fgetc(pipe.get())) out += static_cast<char>(c);
  return out;
}

std::string pasted(const std::vector<CommandLine>& lines) {
  std::string out;
  for (const CommandLine& line : lines) out += std::string(line.continues ? 8 : 4, ' ') + line.text + "\n";
  return out;
}

class BreakCommand : public testing::TestWithParam<std::size_t> {};

TEST_P(BreakCommand, IsTheSameCommandToAShell) {
  for (const std::string command :
       {"nvcc -gencode arch=compute_61,code=sm_61 -gencode arch=compute_75,code=sm_75 -o saxpy SOURCES",
        "cmake -S . -B 'my build' -DCMAKE_CUDA_ARCHITECTURES=\"61-real;75 90\" -G \"Unix \\\" Makefiles\" "
        "last",
        "pip install --no-binary :all: it\\'s\\ one\\ word 'and  two  blanks' \"$HOME x\""}) {
    EXPECT_EQ(words_by_shell(pasted(break_command(command, GetParam(), 4))), words_by_shell(command + "\n"));
  }
}

TEST_P(BreakCommand, KeepsWithinTheWidthWhereWordsAllowIt) {
  const std::string command =
      "nvcc -a b -c d -e f -g h -i j -k l -m n -o p -q r -s t -u v -w x -y z --one --two --three";
  for (const CommandLine& line : break_command(command, GetParam(), 4)) {
    EXPECT_LE(line.text.size() + (line.continues ? 4 : 0), GetParam()) << line.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, BreakCommand, testing::Values(20, 37, 60, 76, 200));

TEST(BreakCommandLines, ShortCommandsStayWhole) {
  ASSERT_EQ(break_command("first -x; second | third -y", 20, 4).size(), 2U);
  EXPECT_FALSE(break_command("first -x; second | third -y", 20, 4).back().continues);
  EXPECT_TRUE(break_command("find . -exec rm {} \\; -print", 20, 4).back().continues);
  const auto lines = break_command("a && b", 80, 4);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].text, "a && b");
}

TEST(BreakCommandLines, BreaksBehindAndWithoutBackslash) {
  const auto lines = break_command("first --with an-option && second --with another", 30, 4);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "first --with an-option &&");
  EXPECT_EQ(lines[1].text, "second --with another");
  EXPECT_FALSE(lines[1].continues);
}

TEST(BreakCommandLines, KeepsAnOptionWithItsValue) {
  const auto lines = break_command("tool -gencode one -gencode two", 22, 4);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].text, "tool -gencode one \\");
  EXPECT_EQ(lines[1].text, "-gencode two");
  EXPECT_TRUE(lines[1].continues);
}

}  // namespace
}  // namespace kshim::test

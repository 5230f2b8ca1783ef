// SPDX-License-Identifier: Apache-2.0
// Words of printed commands, pasted into the shells that people have.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analyzer/core/text.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kHostile = {
    "plain-name_1.so", "a b", "a,b", "x;touch PWN", "x&touch PWN&", "x|touch PWN", "$(touch PWN)",
    "`touch PWN`", "(touch PWN)", "{touch,PWN}", "${IFS}", "$HOME", "~", "~root", "*", "?", "[a-z]", "=ls",
    "%self", "%1", "@args", "!!", "!touch", "^a^b", "#x", "-rf", "--", "x>PWN", "<(touch PWN)", "x\"y",
    "\"; touch PWN; \"", "", "a=b", "1>PWN", "&>PWN", "%PATH%", "$env:HOME", "$(New-Item PWN)",
    ";New-Item PWN", "a;b", ":", "sk:x@y+z",
    // Not quotable in every one of them:
    "it's", "a\\';touch PWN;#", "\\", "a\\\\b", "\\'", "';New-Item PWN;#", "\u2018;New-Item PWN;#",
    "\u2019;touch PWN;#", "\u201a;touch PWN;#", "\u201b;touch PWN;#", "a\ntouch PWN", "a\rtouch PWN",
    "a\ttouch", "\x1b[2J", "\x7f"};

std::string output_of(const std::vector<std::string>& command, const fs::path& folder) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    if (chdir(folder.c_str()) != 0 || setenv("HOME", folder.c_str(), 1) != 0) _exit(1);
    dup2(ends[1], STDOUT_FILENO);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  std::string out;
  std::array<char, 4096> part{};
  for (ssize_t got = 1; (got = read(ends[0], part.data(), part.size())) > 0;)
    out.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(pid, nullptr, 0);
  return out;
}

class Shells : public testing::TestWithParam<std::vector<std::string>> {};

// shows: printed commands: names that a shell would obey, pasted into bash, dash, zsh, fish, PowerShell
TEST_P(Shells, ReadEveryWordBackOrNeverGetIt) {
  std::string pattern = testing::TempDir() + "kshim-shells-XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  const fs::path folder = pattern;
  std::vector<std::string> shell = GetParam();
  const bool powershell = shell[0] == "pwsh";
  shell.push_back(powershell ? "[Console]::Write('there')" : "printf there");
  if (output_of(shell, folder) != "there") {
    fs::remove_all(folder);
    GTEST_SKIP() << shell[0] << " is not installed";
  }
  // One start for all words.
  std::string script;
  std::string expected;
  for (const std::string& word : kHostile) {
    const std::string quoted = shell_quote(word);
    if (quoted.front() == kNoShellWord) continue;
    script +=
        powershell ? "& /usr/bin/printf '%s|' " + quoted + "\n" : "command printf '%s|' " + quoted + "\n";
    expected += word + "|";
  }
  shell.back() = script;
  EXPECT_EQ(output_of(shell, folder), expected);
  EXPECT_FALSE(fs::exists(folder / "PWN")) << "a word was a command";
  fs::remove_all(folder);
}
INSTANTIATE_TEST_SUITE_P(All, Shells,
                         testing::Values(std::vector<std::string>{"bash", "-c"},
                                         std::vector<std::string>{"dash", "-c"},
                                         std::vector<std::string>{"zsh", "-f", "-c"},
                                         std::vector<std::string>{"fish", "--no-config", "-c"},
                                         std::vector<std::string>{"pwsh", "-NoProfile", "-Command"}));

// about_Quoting_Rules and about_Special_Characters: between single quotes everything is literal but the
// quotes themselves, and U+2018 to U+201B are quotes.
TEST(PowerShell, ItsRulesHold) {
  for (const std::string& word : kHostile) {
    const std::string quoted = shell_quote(word);
    if (quoted.front() == kNoShellWord) continue;
    if (quoted.front() == '\'') {
      const std::string inner = quoted.substr(1, quoted.size() - 2);
      for (const char* quote : {"'", "\u2018", "\u2019", "\u201a", "\u201b"})
        EXPECT_EQ(inner.find(quote), std::string::npos) << quoted;
    } else {
      EXPECT_EQ(quoted.find_first_of("`$\"(){};,|&<>#@ \t\n*?[]~!^"), quoted.find('@')) << quoted;
      EXPECT_NE(quoted.front(), '@');
      EXPECT_NE(quoted.front(), '%');
    }
  }
}

}  // namespace
}  // namespace kshim::test

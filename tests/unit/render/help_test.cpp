// SPDX-License-Identifier: Apache-2.0
// The pages of --help against the options that the commands take: neither has what the other lacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyzer/cli/command.h"
#include "analyzer/core/text.h"
#include "tests/support/command_names.h"

namespace kshim::test {
namespace {

using testing::HasSubstr;
using testing::Le;
using testing::Not;

std::set<std::string> names_of(const PageRow& row) {
  std::set<std::string> out;
  for (const std::string& word : split(row.name, ", "))
    if (word.starts_with('-')) out.insert(word);
  return out;
}

TEST(HelpPages, HaveARowForEachOptionAndNoOther) {
  for (const cli::Command& command : commands()) {
    Arguments arguments(command);
    const auto run = command.set_up(arguments);
    std::set<std::set<std::string>> on_page;
    std::set<std::set<std::string>> taken;
    for (const PageRow& row : rows_of(arguments.page(), "Options:")) on_page.insert(names_of(row));
    for (const CLI::Option* option : arguments.app().get_options()) {
      std::set<std::string> names;
      for (const std::string& name : option->get_snames()) names.insert("-" + name);
      for (const std::string& name : option->get_lnames()) names.insert("--" + name);
      if (!names.empty()) taken.insert(std::move(names));
    }
    EXPECT_EQ(on_page, taken) << command.name;
  }
}

TEST(HelpPages, NameTheTypeOfEachValue) {
  for (const cli::Command& command : commands()) {
    Arguments arguments(command);
    const auto run = command.set_up(arguments);
    for (CLI::Option* option : arguments.app().get_options()) {
      if (option->get_lnames().empty()) continue;
      EXPECT_EQ(arguments.type_of(*option).empty(), option->get_items_expected_max() == 0)
          << command.name << ' ' << option->get_name();
    }
  }
}

TEST(HelpPages, HaveAnExampleAndFitATerminal) {
  for (const cli::Command& command : commands()) {
    const std::string page = Arguments(command).page();
    EXPECT_TRUE(page.starts_with(fmt::format("Usage: kshim {}", command.name)));
    EXPECT_THAT(page, HasSubstr("\nExamples:\n  "));
    for (const std::string& line : split(page.substr(0, page.find("\nExamples:")), "\n"))
      EXPECT_THAT(line.size(), Le(80U)) << line;
  }
}

TEST(HelpPages, FitAScreenAndTellOfTheOptionsOfAllOnce) {
  constexpr std::size_t kScreen = 50;  // lines of a terminal that people work in
  for (const cli::Command& command : commands()) {
    Arguments arguments(command);
    const auto run = command.set_up(arguments);
    const std::string help = arguments.help();
    EXPECT_THAT(split(help, "\n").size(), Le(kScreen)) << command.name;
    EXPECT_THAT(help, Not(HasSubstr("--io-timeout"))) << command.name;
  }
  for (const char* option : {"--knowledge", "--max-memory", "--io-timeout"})
    EXPECT_THAT(std::string(overview()), HasSubstr(option));
}

TEST(HelpPages, TheOverviewListsTheCommands) {
  std::vector<std::string> listed;
  for (const PageRow& row : rows_of(std::string(overview()), "Commands:")) listed.push_back(row.name);
  std::vector<std::string> known;
  for (const cli::Command& command : commands()) known.emplace_back(command.name);
  known.emplace_back("help");
  EXPECT_EQ(listed, known);
}

}  // namespace
}  // namespace kshim::test

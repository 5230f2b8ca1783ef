// SPDX-License-Identifier: Apache-2.0
// Completion. The scripts of the shells ask `kshim __complete WORD...`, whose last word is being typed: each
// line of the answer is a word and what it means, or `:file` or `:folder`, which the shell completes itself.
#include <fmt/format.h>

#include "analyzer/cli/command.h"
#include "analyzer/core/text.h"

extern "C" const char kshim_page_bash[], kshim_page_zsh[], kshim_page_fish[];

namespace kshim::cli {
namespace {

constexpr std::string_view kMark = "one of ";

void offer(std::string_view typed, std::string_view word, std::string_view meaning) {
  if (word.starts_with(typed))
    fmt::print("{}\t{}\n", word, meaning.substr(0, meaning.find_first_of(":;(\n")));
}

void offer_value(const Arguments& arguments, CLI::Option& option, std::string_view typed) {
  const std::vector<std::string> choices = choices_of(option);
  for (const std::string& choice : choices) offer(typed, choice, {});
  if (choices.empty()) fmt::print("{}\n", arguments.type_of(option) == "DIR" ? ":folder" : ":file");
}

}  // namespace

int complete(const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? std::string() : words.back();
  if (words.size() < 2 || (words.size() == 2 && words[0] == "help")) {
    for (const PageRow& row : rows_of(std::string(overview()), "Commands:"))
      offer(typed, row.name, row.meaning);
    for (const char* option : {"--version", "--help"}) offer(typed, option, {});
    return exit_status::kOk;
  }
  const auto command = std::ranges::find(commands(), words[0], &Command::name);
  if (command == commands().end()) return exit_status::kMisuse;
  Arguments arguments(*command);
  const auto run = command->set_up(arguments);
  CLI::Option* const before = arguments.app().get_option_no_throw(words[words.size() - 2]);
  if (before != nullptr && before->get_items_expected_max() != 0) {
    offer_value(arguments, *before, typed);
  } else if (!typed.starts_with('-')) {
    fmt::print(":file\n");
  } else {
    for (const PageRow& row : rows_of(arguments.page(), "Options:"))
      for (const std::string& name : split(row.name, ", "))
        if (name.starts_with('-')) offer(typed, name, row.meaning);
  }
  return exit_status::kOk;
}

CLI::Validator one_of(const std::vector<std::string>& choices) {
  CLI::Validator out(
      [choices](std::string& value) {
        if (contains(choices, value)) return std::string();
        return fmt::format("`{}` is not one of {}{}", sanitize(value), fmt::join(choices, ", "),
                           did_you_mean(value, choices));
      },
      "");
  out.name(fmt::format("{}{}", kMark, fmt::join(choices, " ")));
  return out;
}

std::vector<std::string> choices_of(CLI::Option& option) {
  try {
    const std::string& name = option.get_validator(0)->get_name();
    if (name.starts_with(kMark)) return split(name.substr(kMark.size()), " ");
  } catch (const CLI::OptionNotFound&) {  // it has no validator
  }
  return {};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix) {
  const std::string near = nearest(word, {known.begin(), known.end()});
  return near.empty() ? std::string() : fmt::format("; did you mean `{}{}`?", prefix, near);
}

std::function<int()> set_up_completion(Arguments& arguments) {
  auto shell = std::make_shared<std::string>();
  arguments.add_rest("SHELL", *shell)->required()->check(one_of({"bash", "zsh", "fish"}));
  return [shell] {
    fmt::print("{}", *shell == "bash" ? kshim_page_bash : *shell == "zsh" ? kshim_page_zsh : kshim_page_fish);
    return exit_status::kOk;
  };
}

}  // namespace kshim::cli

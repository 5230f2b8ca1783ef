// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "analyzer/cli/command.h"
#include "analyzer/core/text.h"

// Made by tools/completions.
extern "C" const char kshim_page_bash[], kshim_page_zsh[], kshim_page_fish[];

namespace kshim::cli {

CLI::Validator one_of(const std::vector<std::string>& choices) {
  CLI::Validator out(
      [choices](std::string& value) {
        if (core::contains(choices, value)) return std::string();
        return fmt::format("`{}` is not one of {}{}", core::sanitize(value), fmt::join(choices, ", "),
                           did_you_mean(value, choices));
      },
      "");
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix) {
  const std::string near = core::nearest(word, {known.begin(), known.end()});
  return near.empty() ? std::string() : fmt::format(" (did you mean `{}{}`?)", prefix, near);
}

std::function<int()> set_up_completion(Arguments& arguments) {
  auto shell = std::make_shared<std::string>();
  arguments.add_rest("SHELL", *shell)->required()->check(one_of({"bash", "zsh", "fish"}));
  return [shell] {
    fmt::print("{}", *shell == "bash" ? kshim_page_bash : *shell == "zsh" ? kshim_page_zsh : kshim_page_fish);
    return core::exit_status::kOk;
  };
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// Completion. The scripts of the shells ask `kshim __complete WORD...`, whose last word is being typed: each
// line of the answer is a word and what it means, or `:file` or `:folder`, which the shell completes itself.
#include <fmt/format.h>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/core/text.h"

namespace kshim::cli {
namespace {

constexpr std::string_view kMark = "one of ";

constexpr std::string_view kBash = R"sh(# bash completion of kshim: kshim completion bash
_kshim() {
  local line word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :file) COMPREPLY+=($(compgen -f -- "$word")) ;;
      :folder) COMPREPLY+=($(compgen -d -- "$word")) ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <(kshim __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o filenames -F _kshim kshim
)sh";

constexpr std::string_view kZsh = R"sh(#compdef kshim
# zsh completion of kshim: kshim completion zsh
_kshim() {
  local line
  local -a found
  for line in ${(f)"$(kshim __complete "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    case $line in
      :file) _files ;;
      :folder) _files -/ ;;
      *) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( $#found )) && _describe kshim found
}
if [ "$funcstack[1]" = _kshim ]; then _kshim "$@"; else compdef _kshim kshim; fi
)sh";

constexpr std::string_view kFish = R"sh(# fish completion of kshim: kshim completion fish
function __kshim_words
  for line in (kshim __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
    switch $line
      case ':file'
        __fish_complete_path (commandline -ct)
      case ':folder'
        __fish_complete_directories (commandline -ct)
      case '*'
        echo $line
    end
  end
end
complete -c kshim -f -a '(__kshim_words)'
)sh";

void offer(std::string_view typed, std::string_view word, std::string_view meaning) {
  if (word.starts_with(typed))
    fmt::print("{}\t{}\n", word, meaning.substr(0, meaning.find_first_of(":;(\n")));
}

/// The choices that one_of() gave an option; none for another.
std::vector<std::string> choices_of(CLI::Option& option) {
  try {
    const std::string& name = option.get_validator(0)->get_name();
    if (name.starts_with(kMark)) return split(name.substr(kMark.size()), " ");
  } catch (const CLI::OptionNotFound&) {  // it has no validator
  }
  return {};
}

void offer_value(CLI::Option& option, std::string_view typed) {
  const std::vector<std::string> choices = choices_of(option);
  for (const std::string& choice : choices) offer(typed, choice, {});
  if (choices.empty()) fmt::print("{}\n", option.get_type_name().starts_with("DIR") ? ":folder" : ":file");
}

}  // namespace

int complete(const std::vector<std::string>& words) {
  const std::string typed = words.empty() ? std::string() : words.back();
  const std::vector<Command> all = commands();
  if (words.size() < 2 || (words.size() == 2 && words[0] == "help")) {
    for (const Command& command : all) offer(typed, command.name, command.synopsis);
    offer(typed, "help", "the help of a command");
    for (const char* option : {"--version", "--help"}) offer(typed, option, {});
    return exit_status::kOk;
  }
  const auto command = std::ranges::find(all, words[0], &Command::name);
  if (command == all.end()) return exit_status::kMisuse;
  CLI::App app;
  style_help(app, *command);
  const auto run = command->set_up(app);
  CommonOptions common;
  add_common_options(app, *command, common);
  CLI::Option* const before = app.get_option_no_throw(words[words.size() - 2]);
  if (before != nullptr && before->get_items_expected_max() != 0) {
    offer_value(*before, typed);
  } else if (!typed.starts_with('-')) {
    fmt::print(":file\n");
  } else {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_snames())
        offer(typed, "-" + name, option->get_description());
      for (const std::string& name : option->get_lnames())
        offer(typed, "--" + name, option->get_description());
    }
  }
  return exit_status::kOk;
}

CLI::Validator one_of(const std::vector<std::string>& choices) {
  CLI::Validator out(
      [choices](std::string& value) {
        if (std::ranges::find(choices, value) != choices.end()) return std::string();
        return fmt::format("`{}` is not one of {}{}", harmless(value), fmt::join(choices, ", "),
                           did_you_mean(value, choices));
      },
      "");
  out.name(fmt::format("{}{}", kMark, fmt::join(choices, " ")));
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix) {
  const std::string near = nearest(word, {known.begin(), known.end()});
  return near.empty() ? std::string() : fmt::format("; did you mean `{}{}`?", prefix, near);
}

Command completion_command() {
  return {.name = "completion",
          .synopsis = "print a completion script for bash, zsh or fish",
          .usage = "bash|zsh|fish",
          .details = {},
          .example =
              "  eval \"$(kshim completion bash)\"\n"
              "  kshim completion zsh > \"${fpath[1]}/_kshim\"\n"
              "  kshim completion fish > ~/.config/fish/completions/kshim.fish\n",
          .footer = {},
          .set_up = [](CLI::App& app) -> std::function<int()> {
            auto shell = std::make_shared<std::string>();
            app.add_option("SHELL", *shell, "bash, zsh or fish")
                ->required()
                ->check(one_of({"bash", "zsh", "fish"}))
                ->group("");
            return [shell] {
              fmt::print("{}", *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish);
              return exit_status::kOk;
            };
          }};
}

}  // namespace kshim::cli

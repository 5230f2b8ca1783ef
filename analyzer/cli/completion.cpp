// SPDX-License-Identifier: Apache-2.0
// kshim completion: scripts for the shells, from the tables of options that --help is made of.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/core/text.h"

namespace kshim::cli {
namespace {

constexpr std::string_view kMark = "one of ";

/// The first sentence of a description, as a word in single quotes of sh, zsh and fish.
std::string plain(std::string_view text) {
  std::string out(text.substr(0, text.find_first_of(":;(\n")));
  std::erase_if(out, [](char c) { return c == '\'' || c == '[' || c == ']' || c == '\\' || c == '`'; });
  return out;
}

struct Row {
  std::vector<std::string> names;  ///< "-o", "--output"
  std::vector<std::string> choices;
  bool value = false;
  bool folder = false;
  std::string meaning;
};

std::vector<Row> rows_of(const Command& command) {
  CLI::App app;
  const auto run = command.set_up(app);
  CommonOptions common;
  add_common_options(app, command, common);
  std::vector<Row> out = {{.names = {"-h", "--help"}, .choices = {}, .meaning = "show the help"}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional() == false || option->check_lname("help")) continue;
    Row row{.names = {},
            .choices = choices_of(*option),
            .value = option->get_items_expected_max() != 0,
            .folder = option->get_type_name().starts_with("DIR"),
            .meaning = plain(option->get_description())};
    for (const std::string& name : option->get_snames()) row.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) row.names.push_back("--" + name);
    out.push_back(std::move(row));
  }
  return out;
}

std::string bash() {
  std::string names;
  std::string cases;
  for (const Command& command : commands()) {
    names += fmt::format("{} ", command.name);
    std::string words;
    std::string values;
    for (const Row& row : rows_of(command)) {
      words += fmt::format("{} ", fmt::join(row.names, " "));
      if (row.value)
        values += row.choices.empty()
                      ? fmt::format("        {}) COMPREPLY=($(compgen -{} -- \"$word\")); return ;;\n",
                                    fmt::join(row.names, "|"), row.folder ? "d" : "f")
                      : fmt::format("        {}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n",
                                    fmt::join(row.names, "|"), fmt::join(row.choices, " "));
    }
    cases += fmt::format("    {})\n      case $before in\n{}      esac\n      options='{}' ;;\n",
                         command.name, values, words);
  }
  return fmt::format(R"(# bash completion of kshim: kshim completion bash
_kshim() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W '{} help --version --help' -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
    help) COMPREPLY=($(compgen -W '{}' -- "$word")); return ;;
{}  esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}}
complete -o filenames -F _kshim kshim
)",
                     names, names, cases);
}

std::string zsh() {
  std::string names;
  std::string cases;
  for (const Command& command : commands()) {
    names += fmt::format("    '{}:{}'\n", command.name, plain(command.synopsis));
    std::string options;
    for (const Row& row : rows_of(command)) {
      const std::string value = !row.value ? ""
                                : !row.choices.empty()
                                    ? fmt::format(":value:({})", fmt::join(row.choices, " "))
                                : row.folder ? ":folder:_files -/"
                                             : ":value:_files";
      for (const std::string& name : row.names)
        options += fmt::format("        '{}[{}]{}' \\\n", name, row.meaning, value);
    }
    cases += fmt::format("      {})\n        _arguments -s \\\n{}        '*:file:_files' ;;\n", command.name,
                         options);
  }
  return fmt::format(R"(#compdef kshim
# zsh completion of kshim: kshim completion zsh
_kshim() {{
  local -a names
  names=(
{}    'help:the help of a command'
  )
  if (( CURRENT == 2 )); then
    _describe command names
  else
    local command=$words[2]
    shift words
    (( CURRENT-- ))
    case $command in
      help) _describe command names ;;
{}    esac
  fi
}}
if [ "$funcstack[1]" = _kshim ]; then _kshim "$@"; else compdef _kshim kshim; fi
)",
                     names, cases);
}

std::string fish() {
  std::string out = "# fish completion of kshim: kshim completion fish\n";
  for (const Command& command : commands()) {
    out += fmt::format("complete -c kshim -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                       plain(command.synopsis));
    for (const Row& row : rows_of(command)) {
      std::string names;
      for (const std::string& name : row.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const std::string value = !row.value ? ""
                                : row.choices.empty()
                                    ? " -r"
                                    : fmt::format(" -x -a '{}'", fmt::join(row.choices, " "));
      out += fmt::format("complete -c kshim -n '__fish_seen_subcommand_from {}'{}{} -d '{}'\n", command.name,
                         names, value, row.meaning);
    }
  }
  return out;
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& choices) {
  CLI::Validator out(
      [choices](std::string& value) {
        if (std::find(choices.begin(), choices.end(), value) != choices.end()) return std::string();
        return fmt::format("`{}` is not one of {}{}", analysis::harmless(value), fmt::join(choices, ", "),
                           did_you_mean(value, choices));
      },
      "");
  out.name(fmt::format("{}{}", kMark, fmt::join(choices, " ")));
  return out;
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> out;
  try {
    std::string_view name = const_cast<CLI::Option&>(option).get_validator(0)->get_name();
    if (!name.starts_with(kMark)) return out;
    for (name.remove_prefix(kMark.size()); !name.empty();
         name.remove_prefix(std::min(name.find(' ') + 1, name.size()))) {
      out.emplace_back(name.substr(0, name.find(' ')));
      if (name.find(' ') == std::string_view::npos) break;
    }
  } catch (const CLI::OptionNotFound&) {  // it has no validator
  }
  return out;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix) {
  const std::string near = analysis::nearest(word, {known.begin(), known.end()});
  return near.empty() ? std::string() : fmt::format("; did you mean `{}{}`?", prefix, near);
}

std::string completion_script(std::string_view shell) {
  return shell == "bash" ? bash() : shell == "zsh" ? zsh() : fish();
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
              fmt::print("{}", completion_script(*shell));
              return exit_status::kOk;
            };
          }};
}

}  // namespace kshim::cli

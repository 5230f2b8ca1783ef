// SPDX-License-Identifier: Apache-2.0
// A command is a row of commands.def: a page (help/NAME.txt), which is all that is said of it and of its
// options, and a file (cmd_NAME.cpp), which says where their values go.
#pragma once
#include <CLI/CLI.hpp>

#include "analyzer/core/text.h"
#include "analyzer/core/user_error.h"
#include "analyzer/render/formats.h"

namespace kshim::cli {

class Arguments;
struct Command {
  std::string_view name;
  std::string_view page;
  /// Declares the options and returns what runs once they are parsed. What that returns is the exit status.
  std::function<int()> (*set_up)(Arguments& arguments);
  int misuse_status;
};
std::span<const Command> commands();
#define KSHIM_COMMAND(name, status) std::function<int()> set_up_##name(Arguments& arguments);
#include "analyzer/cli/commands.def"
#undef KSHIM_COMMAND

/// How a result is written.
struct Written {
  render::Format format = render::Format::text;
  std::string output;
  bool full = false;
  bool verbose = false;
};

/// The arguments of a command, as its parser takes them. The page has a row for each option.
class Arguments {
 public:
  explicit Arguments(const Command& command);
  /// A flag, or an option with one value each time it is given.
  template <class T>
  CLI::Option* add(const char* names, T& to) {
    if constexpr (std::is_same_v<T, bool>)
      return app_.add_flag(names, to);
    else
      return with_type(app_.add_option(names, to)->allow_extra_args(false)->check(value_of<T>()));
  }
  /// What stands behind the options.
  template <class T>
  CLI::Option* add_rest(const char* name, T& to) {
    return app_.add_option(name, to);
  }
  /// --format of these, and --output.
  void add(Written& to, std::span<const render::Format> formats = render::kFormats);
  /// UserError where something is wrong. False: help was asked for.
  bool parse(std::vector<std::string> words);
  std::string page() const;
  /// What --help prints: the same without the rows that all commands have.
  std::string help() const;
  /// "DIR" of "--root DIR".
  std::string type_of(const CLI::Option& option) const;
  CLI::App& app() { return app_; }
  /// What every command takes, but `path`.
  std::string knowledge, memory;
  unsigned io_timeout = 60;  ///< seconds; 0: waits

 private:
  /// Refuses the end of the options, and words where a number belongs.
  template <class T>
  static CLI::Validator value_of() {
    return {[](const std::string& value) {
              if (value == "--") return std::string("a value is missing");
              if constexpr (std::is_arithmetic_v<T>)
                if (!core::parse_number<T>(value))
                  return fmt::format("`{}` is not a number", core::sanitize(value));
              return std::string();
            },
            ""};
  }
  CLI::Option* with_type(CLI::Option* option);
  std::string filled(std::string_view common) const;
  core::UserError misuse(const CLI::ParseError& error) const;
  const Command& command_;
  CLI::App app_;
  std::string formats_;
};

/// A row of a page, under "Options:" or "Commands:".
struct PageRow {
  std::string name;  ///< "-o, --output FILE"
  std::string meaning;
};
std::vector<PageRow> rows_of(const std::string& page, std::string_view title);
/// The list of the commands.
std::string_view overview();
std::string version_line();

/// A check that takes one of these alone.
CLI::Validator one_of(const std::vector<std::string>& choices);
/// " (did you mean `x`?)", empty where nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix = "");

}  // namespace kshim::cli

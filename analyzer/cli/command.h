// SPDX-License-Identifier: Apache-2.0
// A command is one file (cmd_NAME.cpp) and one row: dispatch.cpp walks the rows for dispatch and for the
// help.
#pragma once
#include <CLI/CLI.hpp>

#include "analyzer/core/prelude.h"
#include "analyzer/core/user_error.h"

namespace kshim::cli {

struct Command {
  std::string_view name;
  std::string_view synopsis;  ///< one line for the list of commands
  std::string_view usage;     ///< what follows `kshim NAME` in the usage line
  std::string_view details;   ///< a sentence or two for its own help, under the usage
  std::string_view example;   ///< command lines that work
  std::string_view footer;    ///< behind the examples, such as the exit statuses; may be empty
  /// Declares the options on `app` and returns what runs once they are parsed. What it returns is the exit
  /// status.
  std::function<int()> (*set_up)(CLI::App& app);
  int misuse_status = exit_status::kMisuse;
};

/// What every command takes, but `path`.
struct CommonOptions {
  std::string knowledge, memory;
  unsigned io_timeout = 0;  ///< seconds; 0: waits
};
void add_common_options(CLI::App& app, const Command& command, CommonOptions& to);

/// An option with one value each time it is given; `type` stands for it in the help.
template <class T>
CLI::Option* add_value(CLI::App& app, const char* names, T& to, const char* type,
                       const std::string& meaning) {
  return app.add_option(names, to, meaning)->type_name(type)->allow_extra_args(false);
}
/// A check that takes one of these alone; the shells complete them.
CLI::Validator one_of(const std::vector<std::string>& choices);
/// "; did you mean `x`?", empty where nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known,
                         std::string_view prefix = "");
std::vector<Command> commands();
/// `kshim __complete WORDS`: prints what the last word may become. Called by the shells' scripts.
int complete(const std::vector<std::string>& words);

// The help screens: the list of commands, and the options of one within 80 columns.
std::string version_line();
std::string overview(std::span<const Command> commands);
/// Gives `app` the look of kshim's help: usage, options, example.
void style_help(CLI::App& app, const Command& command);

Command completion_command();
Command cdi_command();
Command run_command();
Command analyze_command();
Command diff_command();
Command doctor_command();
Command export_command();
Command explain_command();
Command path_command();
Command scan_command();

}  // namespace kshim::cli

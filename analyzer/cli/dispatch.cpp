// SPDX-License-Identifier: Apache-2.0
// kshim COMMAND: finds the row, parses its options, runs it. What nothing else has caught becomes one line
// and a status.
#include <cstdio>
#include <exception>

#include "analyzer/cli/command.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/log.h"
#include "analyzer/core/memory_limit.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::cli {
namespace {

const Command* find(std::span<const Command> commands, std::string_view name) {
  const auto row = std::ranges::find(commands, name, &Command::name);
  return row == commands.end() ? nullptr : &*row;
}

int unknown_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  print_error(fmt::format("unknown command `{}`{}; `kshim help` lists the commands", name,
                          did_you_mean(name, names)));
  return exit_status::kMisuse;
}

std::string near_option(const CLI::App& app, std::string_view word) {
  if (!word.starts_with("--")) return {};
  std::vector<std::string> names = {"knowledge"};
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return did_you_mean(word.substr(2, word.find('=') - 2), names, "--");
}

UserError misuse(const Command& command, const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  std::string what = error.what();
  if (!unknown.empty() && !app.get_prefix_command()) {
    // Of all that is wrong, what to say.
    what = fmt::format("{} `{}`{}",
                       unknown.front().substr(0, 1) == "-" ? "unknown option" : "superfluous argument",
                       unknown.front(), near_option(app, unknown.front()));
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    what = fmt::format("something is missing: kshim {} {}", command.name, command.usage);
  }
  return UserError(fmt::format("{}; see `kshim {} --help`", what, command.name), command.misuse_status);
}

/// `named`: --knowledge. What is wrong with it, or with $KSHIM_KNOWLEDGE, ends the command.
void use_knowledge(const std::string& named, int misuse_status) {
  try {
    for (const std::string& warning : load_knowledge(named)) print_error(warning);
  } catch (const std::runtime_error& error) {
    throw UserError(fmt::format("{}: {}", named.empty() ? "KSHIM_KNOWLEDGE" : "--knowledge", error.what()),
                    misuse_status);
  }
}

/// `named`: --max-memory.
void limit_memory_to(const std::string& named, int misuse_status) {
  const auto bytes = named.empty() ? default_memory() : parse_size(named);
  if (!bytes || *bytes < kLeastMemory)
    throw UserError(
        fmt::format("--max-memory: `{}` is not a size from 64M up, such as 512M or 2G", harmless(named)),
        misuse_status);
  limit_memory(*bytes);
}

int execute(const Command& command, std::vector<std::string> arguments) {
  CLI::App app{std::string(command.synopsis), fmt::format("kshim {}", command.name)};
  style_help(app, command);
  const std::function<int()> run = command.set_up(app);
  CommonOptions common;
  add_common_options(app, command, common);
  // CLI11 takes arguments last to first, so that it can pop them.
  std::ranges::reverse(arguments);
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return exit_status::kOk;
  } catch (const CLI::ParseError& error) {
    throw misuse(command, app, error);
  }
  limit_memory_to(common.memory, command.misuse_status);
  const int failed =
      command.misuse_status == exit_status::kRunFailed ? exit_status::kRunFailed : exit_status::kNoInput;
  end_on_stall(std::chrono::seconds(common.io_timeout), failed);
  use_knowledge(common.knowledge, command.misuse_status);
  try {
    return run();
  } catch (const std::bad_alloc&) {
    // What was read is gone, so there is room for this again.
    throw UserError(no_memory_clause(), failed);
  }
}

int dispatch(std::vector<std::string> arguments) {
  const std::vector<Command> commands = cli::commands();
  if (arguments.empty()) {
    fmt::print(stderr, "{}", overview(commands));
    return exit_status::kMisuse;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "__complete") return complete(arguments);
  if (name == "--version" || name == "-V") {
    use_knowledge({}, exit_status::kMisuse);
    fmt::print("{}", version_line());
    return exit_status::kOk;
  }
  if (name == "help" || name == "--help" || name == "-h") {
    if (arguments.empty()) {
      fmt::print("{}", overview(commands));
      return exit_status::kOk;
    }
    name = arguments.front();
    arguments = {"--help"};
  }
  const Command* command = find(commands, name);
  return command == nullptr ? unknown_command(name) : execute(*command, std::move(arguments));
}

}  // namespace

int main(int argc, char** argv) {
  int status = exit_status::kRunFailed;
  try {
    analysis::set_up_log();
    status = dispatch(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const UserError& error) {
    print_error(error.what());
    status = error.status();
  } catch (const std::exception& error) {
    print_error(fmt::format("internal error: {}", error.what()));
  }
  // A full disk or a closed stdout must not look like success.
  if (std::fflush(stdout) != 0 && status == exit_status::kOk) {
    print_error("stdout: cannot write");
    status = exit_status::kRunFailed;
  }
  return status;
}

}  // namespace kshim::cli

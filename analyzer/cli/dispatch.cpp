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
using core::UserError;
namespace exit_status = core::exit_status;

namespace {

int unknown_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  print_error(name.starts_with('-')
                  ? fmt::format("`{}` is no command: options follow the command; see `kshim help`", name)
                  : fmt::format("unknown command `{}`{}; `kshim help` lists the commands", name,
                                did_you_mean(name, names)));
  return exit_status::kMisuse;
}

/// `named`: --knowledge. What is wrong with it, or with $KSHIM_KNOWLEDGE, ends the command.
void use_knowledge(const std::string& named, int misuse_status) {
  try {
    for (const std::string& warning : data::load_knowledge(named)) print_error(warning);
  } catch (const std::runtime_error& error) {
    throw UserError(fmt::format("{}: {}", named.empty() ? "KSHIM_KNOWLEDGE" : "--knowledge", error.what()),
                    misuse_status);
  }
}

/// `named`: --max-memory.
void limit_memory_to(const std::string& named, int misuse_status) {
  const auto bytes = named.empty() ? core::default_memory() : core::parse_size(named);
  if (!bytes || *bytes < core::kMinMemory)
    throw UserError(fmt::format("--max-memory: `{}` is not a size from 64M up, such as 512M or 2G",
                                core::sanitize(named)),
                    misuse_status);
  core::limit_memory(*bytes);
}

int execute(const Command& command, std::vector<std::string> words) {
  Arguments arguments(command);
  const std::function<int()> run = command.set_up(arguments);
  if (!arguments.parse(std::move(words))) {
    fmt::print("{}", arguments.help());
    return exit_status::kOk;
  }
  limit_memory_to(arguments.memory, command.misuse_status);
  const int failed =
      command.misuse_status == exit_status::kRunFailed ? exit_status::kRunFailed : exit_status::kNoInput;
  end_on_stall(std::chrono::seconds(arguments.io_timeout), failed);
  use_knowledge(arguments.knowledge, command.misuse_status);
  try {
    return run();
  } catch (const std::bad_alloc&) {
    // What was read is gone, so there is room for this again.
    throw UserError(core::no_memory_clause(), failed);
  }
}

int dispatch(std::vector<std::string> words) {
  if (words.empty()) {
    fmt::print(stderr, "{}", overview());
    return exit_status::kMisuse;
  }
  std::string name = words.front();
  words.erase(words.begin());
  if (name == "--version" || name == "-V") {
    use_knowledge({}, exit_status::kMisuse);
    fmt::print("{}", version_line());
    return exit_status::kOk;
  }
  if (name == "help" || name == "--help" || name == "-h") {
    if (words.empty()) {
      fmt::print("{}", overview());
      return exit_status::kOk;
    }
    name = words.front();
    words = {"--help"};
  }
  const auto command = std::ranges::find(commands(), name, &Command::name);
  return command == commands().end() ? unknown_command(name) : execute(*command, std::move(words));
}

}  // namespace

int main(int argc, char** argv) {
  int status = exit_status::kRunFailed;
  try {
    core::set_up_log();
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

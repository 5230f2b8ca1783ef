// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <kshim/report/schema.h>
#include <kshim/version.h>

#include "analyzer/cli/command.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

namespace kshim::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameColumn = 28;

/// Each line of `text` filled to kWidth.
std::string wrap(const std::string& text) {
  std::vector<std::string> lines = split(text, "\n");
  for (std::string& line : lines) line = fill(line, kWidth, 0);
  return join(lines, "\n");
}

std::string row(std::string_view name, std::string_view meaning) {
  std::string line = fmt::format("  {}", name);
  if (line.size() + 2 > kNameColumn) {
    line += '\n' + std::string(kNameColumn, ' ');
  } else {
    line.resize(kNameColumn, ' ');
  }
  return line + fill(meaning, kWidth, kNameColumn) + '\n';
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  explicit HelpFormatter(const Command& command) : command_(command) {}

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string out = fmt::format("Usage: kshim {}{}{}\n\n", command_.name, command_.usage.empty() ? "" : " ",
                                  command_.usage);
    out += wrap(std::string(command_.details.empty() ? command_.synopsis : command_.details)) + '\n';
    for (const std::string& group : app->get_groups()) {
      const auto options =
          app->get_options([&](const CLI::Option* option) { return option->get_group() == group; });
      std::string rows;
      for (const CLI::Option* option : options) rows += make_row(*option);
      if (!rows.empty()) out += fmt::format("\n{}:\n{}", group, rows);
    }
    if (!command_.example.empty()) out += fmt::format("\nExamples:\n{}", command_.example);
    if (!command_.footer.empty()) out += fmt::format("\n{}\n", wrap(std::string(command_.footer)));
    return out;
  }

 private:
  static std::string make_row(const CLI::Option& option) {
    if (option.get_group().empty()) return {};
    std::string names;
    for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    if (names.empty()) {
      names = option.get_name();
    } else if (option.get_items_expected_max() != 0) {
      const std::string type = option.get_type_name();
      names += ' ' + type.substr(0, type.find(':'));  // behind the colon CLI11 adds what its validators say
    }
    return row(names, option.get_description());
  }

  Command command_;
};

}  // namespace

std::string version_line() {
  const std::string_view hash = KSHIM_GIT_HASH;
  const std::vector<std::string>& files = knowledge_files();
  return fmt::format("kshim {}{}, report {}\nknowledge of {}{}\n", KSHIM_VERSION,
                     hash.empty() ? "" : fmt::format(" ({})", hash), report::kReportSchema, knowledge_date(),
                     files.empty() ? "" : fmt::format(" ({})", fmt::join(files, ", ")));
}

std::string overview(std::span<const Command> commands) {
  std::string out =
      "kshim finds the CUDA kernel and the library without code for this GPU, and prints the fix.\n\n"
      "Usage: kshim COMMAND [OPTIONS] ARGUMENTS\n\nCommands:\n";
  for (const Command& command : commands) out += fmt::format("  {:<12}{}\n", command.name, command.synopsis);
  out += fmt::format("  {:<12}{}\n", "help", "show this text, or the help of a command: kshim help run");
  out +=
      "\nExamples:\n"
      "  kshim run -- python train.py                  why does it fail on this GPU?\n"
      "  kshim run --simulate sm_120 -- ./program      would it fail on a GPU that is not here?\n"
      "  kshim scan --target 12.0 dist/*.whl           does this wheel have code for that GPU?\n"
      "  kshim explain --log train.log                 why did this job die?\n"
      "  LD_PRELOAD=$(kshim path) ./program            only record, into kshim-report/\n"
      "  kshim analyze kshim-report/                   explain what was recorded\n";
  return out;
}

void style_help(CLI::App& app, const Command& command) {
  app.formatter(std::make_shared<HelpFormatter>(command));
  app.get_formatter()->column_width(kNameColumn);
  app.set_help_flag("-h,--help", "show this help");
  app.get_option("--help")->group("Options");
}

std::vector<Command> commands() {
  return {run_command(),    analyze_command(), scan_command(), diff_command(), explain_command(),
          doctor_command(), export_command(),  cdi_command(),  path_command(), completion_command()};
}

}  // namespace kshim::cli

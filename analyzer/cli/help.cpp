// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <kshim/report/schema.h>
#include <kshim/version.h>

#include "analyzer/cli/command.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"

extern "C" {
#define KSHIM_COMMAND(name, status) extern const char kshim_page_##name[];
#include "analyzer/cli/commands.def"
#undef KSHIM_COMMAND
extern const char kshim_page_kshim[];
extern const char kshim_page_common[];
}

namespace kshim::cli {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameColumn = 25;
constexpr unsigned kMaxPatience = 86'400;

std::string near_option(const CLI::App& app, std::string_view word) {
  if (!word.starts_with("--")) return {};
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  return did_you_mean(word.substr(2, word.find('=') - 2), names, "--");
}

}  // namespace

std::span<const Command> commands() {
  static const std::array kCommands = {
#define KSHIM_COMMAND(name, status) \
  Command{#name, kshim_page_##name, set_up_##name, core::exit_status::status},
#include "analyzer/cli/commands.def"
#undef KSHIM_COMMAND
  };
  return kCommands;
}

std::string_view overview() { return kshim_page_kshim; }

std::string version_line() {
  const std::string_view hash = KSHIM_GIT_HASH;
  const std::vector<std::string>& files = data::knowledge_files();
  return fmt::format("kshim {}{}, report {}\nknowledge of {}{}\n", KSHIM_VERSION,
                     hash.empty() ? "" : fmt::format(" ({})", hash), report::kReportSchema,
                     data::knowledge_date(),
                     files.empty() ? "" : fmt::format(" ({})", fmt::join(files, ", ")));
}

std::vector<cli::PageRow> rows_of(const std::string& page, std::string_view title) {
  std::vector<cli::PageRow> out;
  bool inside = false;
  for (const std::string& line : core::split(page, "\n")) {
    if (line == title || line.empty()) {
      inside = !line.empty();
    } else if (inside && line.starts_with("   ")) {
      out.back().meaning.append(out.back().meaning.empty() ? "" : " ").append(core::trim(line));
    } else if (inside) {
      const std::size_t end = std::min(line.find("  ", 2), line.size());
      out.push_back({line.substr(2, end - 2), std::string(core::trim(line.substr(end)))});
    }
  }
  return out;
}

Arguments::Arguments(const Command& command)
    : command_(command), app_("", fmt::format("kshim {}", command.name)) {
  if (command_.name == "path") return;
  add("--knowledge", knowledge);
  add("--max-memory", memory);
  add("--io-timeout", io_timeout)->check(CLI::Range(0U, kMaxPatience));
}

CLI::Option* Arguments::with_type(CLI::Option* option) {
  return option->type_name_fn([this, option] { return type_of(*option); });
}

std::string Arguments::type_of(const CLI::Option& option) const {
  for (const PageRow& row : rows_of(page(), "Options:")) {
    const std::vector<std::string> words = core::split(row.name, " ");
    const auto name = std::ranges::find(words, option.get_name());
    if (name != words.end()) return name + 1 == words.end() ? std::string() : name[1];
  }
  return {};
}

std::string Arguments::page() const { return filled(kshim_page_common); }

std::string Arguments::help() const {
  return filled("\nOptions that every command takes: `kshim --help`.\n");
}

std::string Arguments::filled(std::string_view common) const {
  std::string out(command_.page);
  const auto put = [&](std::string_view word, std::string_view text) {
    if (const std::size_t at = out.find(word); at != std::string::npos) out.replace(at, word.size(), text);
  };
  put("{common}\n", common);
  put("output format: {formats}", core::fill("output format: " + formats_, kWidth, kNameColumn));
  return out;
}

void Arguments::add(cli::Written& to, std::span<const render::Format> formats) {
  const auto names = core::mapped(formats, [](const render::Format& format) {
    return render::format_names({&format, 1});
  });
  formats_ = core::join(names, ", ");
  with_type(app_.add_option_function<std::string>("--format", [&to](const std::string& name) {
    to.format = render::parse_format(name).value();
  }))->check(one_of(names));
  add("-o,--output", to.output);
}

core::UserError Arguments::misuse(const CLI::ParseError& error) const {
  const std::vector<std::string> unknown = app_.remaining();
  std::string what = error.what();
  if (!unknown.empty() && !app_.get_prefix_command()) {
    // Of all that is wrong, what to say.
    what = fmt::format("{} `{}`{}",
                       unknown.front().substr(0, 1) == "-" ? "unknown option" : "superfluous argument",
                       unknown.front(), near_option(app_, unknown.front()));
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    constexpr std::string_view kUsage = "Usage: ";
    what = fmt::format("an argument is missing: {}",
                       command_.page.substr(kUsage.size(), command_.page.find("\n\n") - kUsage.size()));
  }
  return core::UserError(fmt::format("{}; see `kshim {} --help`", what, command_.name),
                         command_.misuse_status);
}

bool Arguments::parse(std::vector<std::string> words) {
  // CLI11 takes arguments last to first, so that it can pop them.
  std::ranges::reverse(words);
  try {
    app_.parse(std::move(words));
    return true;
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    throw misuse(error);
  }
}

}  // namespace kshim::cli

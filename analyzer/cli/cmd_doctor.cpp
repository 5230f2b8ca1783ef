// SPDX-License-Identifier: Apache-2.0
// kshim doctor: the machine, before anything runs on it.
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/core/text.h"
#include "analyzer/device_code/elf_file.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/doctor.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kDoctorFormats = {Format::text, Format::json, Format::markdown};

struct DoctorOptions {
  Format format = Format::text;
  std::string output;
  std::string root = "/";
  std::vector<std::string> variables;
  bool full = false;
  std::string program;
};

/// Of another root nobody knows the variables, and ours are not its: what a login there begins with.
std::map<std::string, std::string> foreign_environment() {
  return {{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin"}};
}

/// PROGRAM as the examination takes it: a bare name to look up in PATH, or an absolute path. What is not in
/// PATH may be here.
std::string program_path(const DoctorOptions& options) {
  const std::string& name = options.program;
  if (name.empty() || name.front() == '/') return name;
  std::error_code error;
  const bool bare = name.find('/') == std::string::npos;
  if (bare && (options.root != "/" || search_path(name) || !fs::exists(name, error))) return name;
  if (options.root != "/") return "/" + name;
  return fs::absolute(name).lexically_normal().string();
}

int examine(const DoctorOptions& options) {
  const fs::path root = parse_root(options.root);
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  auto variables = root == "/" ? doctor::own_environment() : foreign_environment();
  for (const std::string& row : options.variables) {
    const std::size_t equals = row.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("--env {}: give NAME=VALUE", harmless(row)));
    variables[row.substr(0, equals)] = row.substr(equals + 1);
  }
  const doctor::Machine machine(root, std::move(variables));
  const doctor::Facts facts = doctor::examine(machine, program_path(options));
  output.write(options.format == Format::json
                   ? doctor::render_json(facts)
                   : doctor::render_page(facts, options.format, render_options(output, false, options.full)));
  const bool found = std::ranges::any_of(
      facts.checks, [](const doctor::Check& check) { return check.severity == Severity::error; });
  return found ? exit_status::kFindings : exit_status::kOk;
}

std::function<int()> set_up_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  app.add_option("PROGRAM", options->program,
                 "a program to look at as well, or a Python environment; of an interpreter or script in an "
                 "environment, its packages are listed")
      ->group("");
  add_format(app, options->format, kDoctorFormats);
  add_value(app, "-o,--output", options->output, "FILE", "write to FILE instead of stdout");
  add_value(app, "--root", options->root, "DIR",
            "look at the file system in DIR (a container's root, a mounted disk) instead of this "
            "machine, with an empty environment except PATH");
  add_value(app, "--env", options->variables, "NAME=VALUE",
            "a variable of that environment, as a container image sets it");
  app.add_flag("--full", options->full, "show home folder, host and UUIDs in markdown");
  return [options] { return examine(*options); };
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .synopsis = "list GPUs, driver and CUDA packages, and their conflicts",
          .usage = "[OPTIONS] [PROGRAM|ENVIRONMENT]",
          .details =
              "Lists the GPUs, the driver, the toolkits and the CUDA libraries that a program would load "
              "here, what the packages of the Python environment are built for, and whether they run on "
              "these GPUs. Reports conflicts, and anything that would keep libkshim.so out of a program. "
              "With PROGRAM it looks at that program's libraries. Runs no program; a separate process asks "
              "libnvidia-ml.so.1. Its Markdown is a block to paste into an issue.",
          .example =
              "  kshim doctor\n"
              "  kshim doctor python\n"
              "  kshim doctor --format markdown .venv/bin/python\n"
              "  kshim doctor --format json ./build/simulate\n",
          .footer = "Exit status: 0 nothing wrong, 1 findings of severity error, 2 wrong arguments.",
          .set_up = set_up_doctor};
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim doctor: the machine, before anything runs on it.
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/render/render.h"

namespace kshim::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kDoctorFormats = {render::Format::text, render::Format::json, render::Format::markdown};

struct DoctorOptions {
  Written written;
  std::string root = "/";
  std::vector<std::string> variables;
  std::string program;
  std::optional<std::string> pid;  ///< an empty one is a mistake
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
  const bool bare = !core::contains(name, '/');
  if (bare && (options.root != "/" || device_code::search_path(name) || !fs::exists(name, error)))
    return name;
  if (options.root != "/") return "/" + name;
  return fs::absolute(name).lexically_normal().string();
}

int examine(const DoctorOptions& options) {
  if (options.pid && (options.root != "/" || !options.variables.empty() || !options.program.empty()))
    throw core::UserError(
        "--pid names the process, with its files and variables: give no PROGRAM, --root or --env");
  const fs::path root = parse_root(options.root);
  Output output(options.written.output, STDOUT_FILENO, core::exit_status::kMisuse);
  auto variables = root == "/" ? input::own_environment() : foreign_environment();
  for (const std::string& row : options.variables) {
    const std::size_t equals = row.find('=');
    if (equals == std::string::npos || equals == 0)
      throw core::UserError(fmt::format("--env {}: give NAME=VALUE", core::sanitize(row)));
    variables[row.substr(0, equals)] = row.substr(equals + 1);
  }
  const input::Machine machine(root, std::move(variables));
  const verbs::Examination found = options.pid ? verbs::examine(input::LiveProcess(*options.pid), {})
                                               : verbs::examine(machine, program_path(options));
  output.write(rendered(found, options.written.format, render_options(output, options.written)));
  const bool wrong = std::ranges::any_of(found.machine.checks, [](const input::Check& check) {
    return check.severity == core::Severity::error;
  });
  return wrong ? core::exit_status::kFindings : core::exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_doctor(Arguments& arguments) {
  auto options = std::make_shared<DoctorOptions>();
  arguments.add_rest("PROGRAM", options->program);
  arguments.add(options->written, kDoctorFormats);
  arguments.add("--pid", options->pid);
  arguments.add("--root", options->root);
  arguments.add("--env", options->variables);
  arguments.add("--full", options->written.full);
  return [options] { return examine(*options); };
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim analyze: what reports say, in any format.
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "analyzer/cli/architectures.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/format.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::cli {
namespace {

struct AnalyzeOptions {
  std::string format = "text";
  std::string output;
  std::vector<std::string> targets;
  std::string assume_cc;
  std::string assume_driver;
  std::string assume_toolkit;
  bool verbose = false;
  bool full = false;
  bool trust_reports = false;
  std::string root;
  std::vector<std::string> paths;
};

analysis::Options to_analysis(const AnalyzeOptions& options) {
  analysis::Options result;
  result.targets = parse_archs("--target", options.targets);
  if (!options.assume_cc.empty()) result.assume_cc = parse_cc("--assume-cc", options.assume_cc);
  if (!options.assume_driver.empty()) {
    result.assume_driver = parse_driver("--assume-driver", options.assume_driver);
  }
  if (!options.assume_toolkit.empty()) {
    result.assume_toolkit = parse_cuda_version("--assume-toolkit", options.assume_toolkit);
  }
  result.trust_reports = options.trust_reports;
  if (!options.root.empty()) {
    std::error_code error;
    result.root = std::filesystem::canonical(options.root, error);
    if (error || !std::filesystem::is_directory(result.root, error))
      throw UserError(fmt::format("--root {}: is not a folder", analysis::harmless(options.root)));
  }
  return result;
}

int analyze(const AnalyzeOptions& options) {
  const analysis::Format format = parse_format(options.format);
  analysis::Options analysis_options = to_analysis(options);
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  for (const std::string& path : options.paths) {
    if (output.is_same_file(path))
      throw UserError(fmt::format("--output {}: is one of the reports to read", path));
  }
  analysis::Analysis analysis;
  {
    ProgressBar bar("reading reports");
    analysis_options.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    analysis = analysis::analyze({options.paths.begin(), options.paths.end()}, analysis_options);
  }
  if (analysis.nothing_readable) {
    print_errors(analysis.notes, options.verbose);
    if (analysis.notes.empty()) print_error("there is no report in what was named");
    return exit_status::kNoInput;
  }
  output.write(analysis::render(analysis, format, render_options(output, options.verbose, options.full)));
  return analysis::worst(analysis) == analysis::Severity::error ? exit_status::kFindings : exit_status::kOk;
}

std::function<int()> set_up(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  app.add_option("PATH", options->paths, "reports, or folders of them")->required()->group("");
  app.add_option("--format", options->format, fmt::format("output format: {}", analysis::format_names()))
      ->type_name("F")
      ->check(one_of(formats()));
  app.add_option("-o,--output", options->output, "write to FILE instead of stdout")->type_name("FILE");
  app.add_option("--target", options->targets, "also say what would fail on these GPUs: 8.6,12.0")
      ->type_name("ARCHS")
      ->allow_extra_args(false);
  app.add_option("--assume-cc", options->assume_cc, "assume this compute capability, or the GPU of this name")
      ->type_name("X.Y");
  app.add_option("--assume-driver", options->assume_driver,
                 "assume this driver: its version, or its CUDA version")
      ->type_name("X.Y");
  app.add_option("--assume-toolkit", options->assume_toolkit,
                 "assume that this CUDA toolkit does the rebuild")
      ->type_name("X.Y");
  app.add_option("--root", options->root,
                 "look for the files of the reports in DIR: a container's root, a mounted disk")
      ->type_name("DIR");
  app.add_flag("-v,--verbose", options->verbose, "show every kernel, image and piece of evidence");
  app.add_flag("--trust-reports", options->trust_reports,
               "use paths and names from other users' reports in commands: for an operator's own spool");
  app.add_flag("--full", options->full,
               "hide nothing: all arguments of programs (markdown, html, json); home folder, host and UUIDs "
               "(markdown, html)");
  return [options] { return analyze(*options); };
}

}  // namespace

Command analyze_command() {
  return {
      .name = "analyze",
      .synopsis = "explain reports: what failed, where, why, and the fix",
      .usage = "[OPTIONS] PATH...",
      .details =
          "Reads reports that libkshim.so wrote. For each failure it names the kernel, the file that lacks "
          "its code, and "
          "the command that fixes it.",
      .example =
          "  kshim analyze kshim-report/\n"
          "  kshim analyze --format json -o analysis.json node7.4711.jsonl\n"
          "  kshim analyze --target sm_75,sm_120 kshim-report/\n",
      .footer =
          "Exit status: 0 nothing wrong, 1 findings of severity error, 2 wrong arguments, 3 nothing "
          "readable.",
      .set_up = set_up};
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim analyze: what reports say, in any format.
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/render/render.h"
#include "analyzer/verbs/analysis.h"

namespace kshim::cli {
namespace {

struct AnalyzeOptions {
  Format format = Format::text;
  std::string output;
  std::vector<std::string> targets;
  Assumptions assumed;
  bool verbose = false;
  bool full = false;
  bool trust_reports = false;
  std::string root;
  std::string status;
  std::vector<std::string> paths;
};

analysis::Options to_analysis(const AnalyzeOptions& options) {
  analysis::Options result;
  result.targets = parse_archs("--target", options.targets);
  options.assumed.apply(result);
  result.trust_reports = options.trust_reports;
  if (!options.root.empty()) result.root = parse_root(options.root);
  return result;
}

// As Nagios' plugin guidelines have them.
constexpr int kNagiosWarning = 1;
constexpr int kNagiosCritical = 2;
constexpr int kNagiosUnknown = 3;

/// One line, with numbers for plots behind the bar, and the exit status.
std::pair<std::string, int> nagios_status(const Analysis& analysis) {
  std::size_t errors = 0;
  std::size_t warnings = 0;
  for (const Finding& finding : analysis.findings) {
    errors += finding.severity == Severity::error ? 1 : 0;
    warnings += finding.severity == Severity::warning ? 1 : 0;
  }
  const bool unproven = analysis.verdict == Verdict::blind || analysis.verdict == Verdict::incomplete;
  const int status = errors != 0 ? kNagiosCritical : warnings != 0 || unproven ? kNagiosWarning : 0;
  constexpr std::array kWords = {"OK", "WARNING", "CRITICAL"};
  std::string first;
  if (errors + warnings != 0) {
    const Finding& finding = analysis.findings.front();
    first = fmt::format(", first {} of {}", row_of(finding.cause).name,
                        harmless(finding.object.empty() ? "the program" : finding.object));
    std::ranges::replace(first, '|', '?');
  }
  return {fmt::format("KSHIM {}: {} in {}: {} and {}{} | errors={} warnings={} processes={}\n",
                      kWords.at(static_cast<std::size_t>(status)), to_name(analysis.verdict),
                      analysis.processes.size() == 1 ? "1 process"
                                                     : fmt::format("{} processes", analysis.processes.size()),
                      counted(errors, "error"), counted(warnings, "warning"), first, errors, warnings,
                      analysis.processes.size()),
          status};
}

int analyze(const AnalyzeOptions& options) {
  analysis::Options analysis_options = to_analysis(options);
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  output.refuse_inputs(options.paths, "the reports to read");
  Analysis analysis;
  {
    ProgressBar bar("reading reports");
    analysis_options.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    analysis = analysis::analyze({options.paths.begin(), options.paths.end()}, analysis_options);
  }
  if (analysis.nothing_readable && !options.status.empty()) {
    output.write("KSHIM UNKNOWN: there is no report that can be read\n");
    return kNagiosUnknown;
  }
  if (analysis.nothing_readable) {
    print_errors(analysis.notes, options.verbose);
    if (analysis.notes.empty()) print_error("there is no report in what was named");
    return exit_status::kNoInput;
  }
  if (!options.status.empty()) {
    const auto [line, status] = nagios_status(analysis);
    output.write(line);
    return status;
  }
  output.write(render(analysis, options.format, render_options(output, options.verbose, options.full)));
  return worst(analysis) == Severity::error ? exit_status::kFindings : exit_status::kOk;
}

std::function<int()> set_up_analyze(CLI::App& app) {
  auto options = std::make_shared<AnalyzeOptions>();
  app.add_option("PATH", options->paths, "reports, or folders of them")->required()->group("");
  add_format(app, options->format);
  add_value(app, "-o,--output", options->output, "FILE", "write to FILE instead of stdout");
  add_value(app, "--target", options->targets, "ARCHS", "also say what would fail on these GPUs: 8.6,12.0");
  add_value(app, "--assume-cc", options->assumed.cc, "X.Y",
            "assume this compute capability, or the GPU of this name");
  add_value(app, "--assume-driver", options->assumed.driver, "X.Y",
            "assume this driver: its version, or its CUDA version");
  add_value(app, "--assume-toolkit", options->assumed.toolkit, "X.Y",
            "assume that this CUDA toolkit does the rebuild");
  add_value(app, "--root", options->root, "DIR",
            "look for the files of the reports in DIR: a container's root, a mounted disk");
  add_value(app, "--status", options->status, "SYSTEM",
            "nagios: one line, and exit with 0, 1 for a warning, 2 for critical, 3 for unknown")
      ->check(one_of({"nagios"}));
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
          "readable. With --status nagios: 0 OK, 1 warning, 2 critical, 3 unknown.",
      .set_up = set_up_analyze};
}

}  // namespace kshim::cli

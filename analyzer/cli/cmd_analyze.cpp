// SPDX-License-Identifier: Apache-2.0
// kshim analyze: what reports say, in any format.
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/render/render.h"
#include "analyzer/render/share.h"
#include "analyzer/verbs/analyze_each.h"

namespace kshim::cli {
namespace exit_status = core::exit_status;

namespace {

struct AnalyzeOptions {
  Written written;
  std::vector<std::string> targets;
  Assumptions assumed;
  bool trust_reports = false;
  std::string root;
  unsigned jobs = 0;
  std::vector<std::string> paths;
};

diagnose::AnalysisOptions to_analysis(const AnalyzeOptions& options) {
  diagnose::AnalysisOptions result;
  result.targets = parse_archs("--target", options.targets);
  options.assumed.apply(result);
  result.trust_reports = options.trust_reports;
  if (!options.root.empty()) result.root = parse_root(options.root);
  return result;
}

/// One analysis a report and line, written as they are made.
int analyze_each(const AnalyzeOptions& options, Output& output) {
  if (!output.is_stream())
    throw core::UserError(
        "--format jsonl is written as reports are read: redirect stdout in place of --output");
  const render::RenderOptions how = render_options(output, options.written);
  std::vector<std::string> notes;
  const verbs::LineMaker maker{
      [&](const verbs::Analysis& analysis) { return rendered(analysis, render::Format::jsonl, how); },
      [&](const std::vector<std::string>& given) {
        return how.full ? given : render::program_and_script(given);
      }};
  const verbs::EachCounts counts = verbs::analyze_each(
      {options.paths.begin(), options.paths.end()}, to_analysis(options), options.jobs, maker,
      [&](std::string_view lines) { output.write(lines); }, notes);
  print_errors(notes, options.written.verbose);
  if (counts.reports == counts.rejected) {
    print_error("there is no report in what was named that can be read");
    return exit_status::kNoInput;
  }
  return counts.errors ? exit_status::kFindings : exit_status::kOk;
}

int analyze(const AnalyzeOptions& options) {
  diagnose::AnalysisOptions analysis_options = to_analysis(options);
  Output output(options.written.output, STDOUT_FILENO, exit_status::kMisuse);
  output.refuse_inputs(options.paths, "the reports to read");
  if (options.written.format == render::Format::jsonl) return analyze_each(options, output);
  verbs::Analysis analysis;
  {
    ProgressBar bar("reading reports");
    analysis_options.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    analysis = verbs::analyze({options.paths.begin(), options.paths.end()}, analysis_options);
  }
  if (analysis.nothing_readable) {
    print_errors(analysis.notes, options.written.verbose);
    if (analysis.notes.empty()) print_error("there is no report in what was named");
    return exit_status::kNoInput;
  }
  output.write(rendered(analysis, options.written.format, render_options(output, options.written)));
  const bool wrong = worst(analysis) == core::Severity::error || analysis.verdict == verbs::Verdict::failure;
  return wrong ? exit_status::kFindings : exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_analyze(Arguments& arguments) {
  auto options = std::make_shared<AnalyzeOptions>();
  arguments.add_rest("PATH", options->paths)->required();
  arguments.add(options->written);
  arguments.add("--target", options->targets);
  options->assumed.add_to(arguments);
  arguments.add("--root", options->root);
  arguments.add("-j,--jobs", options->jobs);
  arguments.add("-v,--verbose", options->written.verbose);
  arguments.add("--trust-reports", options->trust_reports);
  arguments.add("--full", options->written.full);
  return [options] { return analyze(*options); };
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim diff: what a rebuild fixed, and what it broke.
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/compare/diff.h"

namespace kshim::cli {
namespace exit_status = core::exit_status;

namespace {

struct DiffOptions {
  Written written;
  std::vector<std::string> targets;
  std::optional<std::string> driver;
  unsigned jobs = 0;
  bool kernels = false;
  std::string a;
  std::string b;
};

int compare(const DiffOptions& options) {
  compare::DiffRequest wanted;
  wanted.targets = parse_archs("--target", options.targets);
  for (image::Arch& target : wanted.targets) target.suffix = image::Suffix::none;  // a GPU has none
  if (options.driver) wanted.driver = data::parse_driver("--driver", *options.driver);
  wanted.kernels = options.kernels;
  wanted.jobs = options.jobs;
  Output output(options.written.output, STDOUT_FILENO, exit_status::kMisuse);
  output.refuse_inputs({options.a, options.b}, "the files to read");
  compare::Diff diff;
  {
    ProgressBar bar("reading");
    wanted.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    diff.a = read_side(options.a, wanted);
    diff.b = read_side(options.b, wanted);
  }
  diff.request = wanted;
  for (const compare::Side* side : {&diff.a, &diff.b}) {
    if (!side->nothing_there) continue;
    for (const std::string& note : side->notes) print_error(note);
    if (side->notes.empty())
      print_error(fmt::format("{}: nothing that can be compared is there", side->path));
  }
  if (diff.a.nothing_there || diff.b.nothing_there) return exit_status::kNoInput;
  if (diff.a.reports != diff.b.reports)
    throw core::UserError(fmt::format("{} is of a run, {} a scan of files: compare two of a kind",
                                      diff.a.reports ? options.a : options.b,
                                      diff.a.reports ? options.b : options.a));
  compare_sides(diff);
  output.write(rendered(diff, options.written.format, render_options(output, options.written)));
  return diff.has(compare::Effect::lost) ? exit_status::kFindings : exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_diff(Arguments& arguments) {
  auto options = std::make_shared<DiffOptions>();
  arguments.add_rest("A", options->a)->required();
  arguments.add_rest("B", options->b)->required();
  arguments.add(options->written, compare::kDiffFormats);
  arguments.add("--target", options->targets);
  arguments.add("--driver", options->driver);
  arguments.add("--kernels", options->kernels);
  arguments.add("-j,--jobs", options->jobs);
  arguments.add("--full", options->written.full);
  arguments.add("-v,--verbose", options->written.verbose);
  return [options] { return compare(*options); };
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim diff: what a rebuild fixed, and what it broke.
#include <fmt/format.h>
#include <unistd.h>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/compare/diff.h"
#include "analyzer/core/text.h"
#include "analyzer/render/formats.h"

namespace kshim::cli {
namespace {

struct DiffOptions {
  Format format = Format::text;
  std::string output;
  std::vector<std::string> targets;
  std::optional<std::string> driver;
  unsigned jobs = 0;
  bool kernels = false;
  bool sizes = false;
  bool full = false;
  bool verbose = false;
  std::string a;
  std::string b;
};

const char* kind_text(const diff::Side& side) {
  return side.kind == diff::SideKind::reports ? "a report (of a run)" : "a scan (of files)";
}

int compare(const DiffOptions& options) {
  diff::Options wanted;
  wanted.targets = parse_archs("--target", options.targets);
  for (image::Arch& target : wanted.targets) target.suffix = image::Suffix::none;  // a GPU has none
  if (options.driver) wanted.driver = parse_driver("--driver", *options.driver);
  wanted.kernels = options.kernels;
  wanted.sizes = options.sizes;
  wanted.jobs = options.jobs;
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  output.refuse_inputs({options.a, options.b}, "the files to read");
  diff::Diff diff;
  {
    ProgressBar bar("reading");
    wanted.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    diff.a = diff::read_side(options.a, wanted);
    diff.b = diff::read_side(options.b, wanted);
  }
  bool unreadable = false;
  for (const diff::Side* side : {&diff.a, &diff.b}) {
    if (!side->nothing_there) continue;
    unreadable = true;
    for (const std::string& note : side->notes) print_error(note);
    if (side->notes.empty())
      print_error(fmt::format("{}: nothing that can be compared is there", side->path));
  }
  if (unreadable) return exit_status::kNoInput;
  if (diff.a.kind != diff.b.kind)
    throw UserError(fmt::format("{} is {}, {} is {}: compare two of a kind", options.a, kind_text(diff.a),
                                options.b, kind_text(diff.b)));
  diff::compare(wanted, diff);
  output.write(diff::render(diff, options.format, render_options(output, options.verbose, options.full)));
  return diff.lost() ? exit_status::kFindings : exit_status::kOk;
}

std::function<int()> set_up_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  app.add_option("A", options->a, "before")->required()->group("");
  app.add_option("B", options->b, "after")->required()->group("");
  add_format(app, options->format, diff::kFormats);
  add_value(app, "-o,--output", options->output, "FILE", "write to FILE instead of stdout");
  add_value(app, "--target", options->targets, "ARCHS", "compare only for these GPUs: 7.5,12.0");
  add_value(app, "--driver", options->driver, "X.Y",
            "assume this driver: its CUDA version or branch, such as 12.8 or 580 (default: the newest)");
  app.add_flag("--kernels", options->kernels, "also compare kernels (unpacks all images)");
  app.add_flag("--sizes", options->sizes,
               "show every difference in bytes, by architecture and kernel (unpacks all images)");
  add_value(app, "-j,--jobs", options->jobs, "N", "number of threads (default: one a core)");
  app.add_flag("--full", options->full, "show home folder, host and UUIDs in markdown and html");
  app.add_flag("-v,--verbose", options->verbose, "show every file, change, kernel and note");
  return [options] { return compare(*options); };
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .synopsis = "compare two builds: what is fixed, what is lost",
          .usage = "[OPTIONS] A B",
          .details =
              "Compares A (before) with B (after): two reports or folders of reports, two analyses or "
              "scans in JSON, or two files, wheels or folders as kshim scan reads them. It matches files "
              "by path, package and name, not by version.",
          .example =
              "  kshim diff old/libfoo.so new/libfoo.so\n"
              "  kshim diff --target 7.5,9.0 torch-2.9.1+cu126-*.whl torch-2.9.1+cu128-*.whl\n"
              "  kshim diff before.json after.json\n"
              "  kshim diff kshim-report/monday kshim-report/tuesday\n",
          .footer =
              "Losses are architectures, PTX, kernels and files that B lacks, new findings, and PTX that "
              "is too new for a driver that read A's (unless --driver reads it). Exit status: 0 B lost "
              "nothing, 1 B lost something, 2 wrong arguments, 3 nothing readable in A or B.",
          .set_up = set_up_diff};
}

}  // namespace kshim::cli

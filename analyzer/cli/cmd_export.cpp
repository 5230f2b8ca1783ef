// SPDX-License-Identifier: Apache-2.0
// kshim export: reports as flat tables, and what files ask of a GPU.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "analyzer/cli/command.h"
#include "analyzer/cli/export_requirements.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/export/export.h"
#include "analyzer/verbs/ranks.h"

namespace kshim::cli {
namespace {

struct ExportOptions {
  std::string output;
  std::vector<std::string> paths;
  std::string to;
  std::optional<std::string> declared;
  bool verify = false;
  bool zstd = false;
  bool watch = false;
  unsigned settle_s = 600;
};

std::atomic<bool> stop = false;

void export_once(const ExportOptions& options, bool quiet) {
  exports::Options how{
      .folder = options.output, .zstd = options.zstd, .settle_s = options.settle_s, .progress = {}};
  exports::Result result;
  {
    ProgressBar bar("exporting reports");
    how.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    result = exports::export_reports({options.paths.begin(), options.paths.end()}, how);
  }
  print_errors(result.notes, false);
  if (quiet && result.reports + result.rejected == 0) return;
  std::uint64_t rows = 0;
  for (const auto& [table, count] : result.rows) rows += count;
  fmt::print("{} reports, {} rows", analysis::grouped_number(result.reports), analysis::grouped_number(rows));
  if (result.known != 0) fmt::print("; {} exported before", analysis::grouped_number(result.known));
  if (result.unsettled != 0)
    fmt::print("; {} may still grow and are left for later", analysis::grouped_number(result.unsettled));
  if (result.rejected != 0)
    fmt::print("; {} rejected, see table=rejected", analysis::grouped_number(result.rejected));
  fmt::print("\n");
  if (!quiet && result.reports + result.known + result.unsettled == 0)
    throw UserError("there is no report in what was named", exit_status::kNoInput);
}

int export_facts(const ExportOptions& options) {
  export_once(options, options.watch);
  if (!options.watch) return exit_status::kOk;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stop = true; });
  constexpr int kTicks = 300;
  while (!stop) {
    std::fflush(stdout);
    for (int tick = 0; tick < kTicks && !stop; ++tick)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!stop) export_once(options, true);
  }
  return exit_status::kOk;
}

std::function<int()> set_up(CLI::App& app) {
  auto options = std::make_shared<ExportOptions>();
  app.add_option("PATH", options->paths, "reports, or folders of them; with --to, what kshim scan reads")
      ->required()
      ->group("");
  app.add_option("-o,--output", options->output,
                 "folder for the tables; with --to, the output file (default: stdout)")
      ->type_name("DIR");
  app.add_option("--to", options->to,
                 fmt::format("write GPU requirements of files instead of tables: {}",
                             fmt::join(requirement_names(), ", ")))
      ->type_name("SYSTEM")
      ->check(one_of(requirement_names()));
  app.add_flag(
      "--verify", options->verify,
      "compare wheels, conda packages and images with what they declare; exit with 1 if they promise a GPU "
      "on which nothing runs");
  app.add_option("--declared", options->declared,
                 "with --to: compare the files with this text (@FILE reads it) instead")
      ->type_name("TEXT");
  app.add_flag("--zstd", options->zstd, "compress the files");
  app.add_flag("--watch", options->watch, "continue, and export new reports every 30 seconds");
  app.add_option("--settle", options->settle_s,
                 "leave unfinished reports that changed in the last S seconds for the next export (default: "
                 "600)")
      ->type_name("S");
  return [options] {
    if (!options->to.empty() || options->verify || options->declared)
      return export_requirements(
          {options->to, options->output, options->declared, options->verify, options->paths});
    if (options->output.empty()) throw UserError("-o DIR is missing: where the tables go; or --to SYSTEM");
    return export_facts(*options);
  };
}

}  // namespace

Command export_command() {
  return {.name = "export",
          .synopsis = "write reports as tables, or the GPU requirements of files",
          .usage =
              "[OPTIONS] PATH... -o DIR\n       kshim export --to SYSTEM [--declared TEXT] PATH...\n       "
              "kshim export --verify PATH...",
          .details =
              "Writes flat tables in newline-delimited JSON (kshim-facts/1) to DIR/table=NAME/date=DAY: "
              "processes, devices, images, serves, loads, failures, findings, kernels, rejected. It "
              "exports each report once.\nWith --to it writes the GPU requirements of files: "
              "nvidia-require for NVIDIA's container runtime (not in CDI mode), nfd for Node Feature "
              "Discovery, wheel-variant for a wheel variant (PEP 825), conda for __cuda_arch (CEP 46).",
          .example =
              "  kshim export /var/spool/kshim -o /data/kshim\n"
              "  kshim export --zstd --watch /var/spool/kshim -o /data/kshim\n"
              "  kshim export --to nvidia-require image.tar\n"
              "  kshim export --verify dist/*.whl\n"
              "  kshim export --to conda --declared \"__cuda_arch >=7.5\" lib/libfoo.so\n",
          .footer =
              "Exit status: 0; 1 if files differ from the declaration or could not be read to their end; 2 "
              "wrong arguments, or a folder that cannot be written; 3 no report (with --to: no device "
              "code).",
          .set_up = set_up};
}

}  // namespace kshim::cli

// SPDX-License-Identifier: Apache-2.0
// kshim export: reports as flat tables.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/export/export.h"
#include "analyzer/verbs/processes.h"

namespace kshim::cli {
namespace {

struct ExportOptions {
  std::string output;
  std::vector<std::string> paths;
  bool zstd = false;
  bool watch = false;
  unsigned jobs = 0;
  unsigned settle_s = 600;
};

std::atomic<bool> stop = false;

void export_once(const ExportOptions& options, Exporter& exporter, bool quiet) {
  const ExportResult result = exporter.run({options.paths.begin(), options.paths.end()});
  print_errors(result.notes, false);
  if (quiet && result.reports + result.scans + result.rejected == 0) return;
  std::uint64_t rows = 0;
  for (const auto& [table, count] : result.rows) rows += count;
  fmt::print("{} reports, {} rows", grouped_number(result.reports), grouped_number(rows));
  if (result.scans != 0) fmt::print("; {} scans", grouped_number(result.scans));
  if (result.known != 0) fmt::print("; {} exported before", grouped_number(result.known));
  if (result.unsettled != 0)
    fmt::print("; {} may still grow and are left for later", grouped_number(result.unsettled));
  if (result.rejected != 0) fmt::print("; {} rejected, see table=rejected", grouped_number(result.rejected));
  fmt::print("\n");
  if (!quiet && result.reports + result.scans + result.known + result.unsettled == 0)
    throw UserError("there is no report in what was named", exit_status::kNoInput);
}

/// KSHIM_PRIVATE, as the shim reads it.
void hide_users(ExportRequest& to) {
  constexpr std::size_t kShortestKey = 16;
  constexpr std::size_t kMaxKeyLength = 4096;
  const char* const given = std::getenv("KSHIM_PRIVATE");
  const std::string value = given == nullptr ? "" : given;
  to.hide_users = !value.empty() && value != "0";
  if (!to.hide_users || value == "1") return;
  to.key = files::read_whole(value, kMaxKeyLength + 1).value_or("");
  while (to.key.ends_with('\n') || to.key.ends_with('\r')) to.key.pop_back();
  if (to.key.size() < kShortestKey || to.key.size() > kMaxKeyLength)
    throw UserError(fmt::format(
        "KSHIM_PRIVATE: {} is no key: name a file of 16 to 4096 bytes that can be read", sanitize(value)));
}

int export_facts(const ExportOptions& options) {
  std::optional<ProgressBar> bar("exporting reports");
  ExportRequest to{
      .folder = options.output, .zstd = options.zstd, .settle_s = options.settle_s, .jobs = options.jobs};
  if (bar->shows())
    to.progress = [&bar](std::uint64_t done, std::uint64_t total) {
      if (bar) bar->update(done, total);
    };
  hide_users(to);
  Exporter exporter(std::move(to));
  export_once(options, exporter, options.watch);
  bar.reset();
  if (!options.watch) return exit_status::kOk;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stop = true; });
  constexpr int kTicks = 300;
  while (!stop) {
    std::fflush(stdout);
    for (int tick = 0; tick < kTicks && !stop; ++tick)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!stop) export_once(options, exporter, true);
  }
  return exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_export(Arguments& arguments) {
  auto options = std::make_shared<ExportOptions>();
  arguments.add_rest("PATH", options->paths)->required();
  arguments.add("-o,--output", options->output);
  arguments.add("--zstd", options->zstd);
  arguments.add("--watch", options->watch);
  arguments.add("-j,--jobs", options->jobs);
  arguments.add("--settle", options->settle_s);
  return [options] {
    if (options->output.empty()) throw UserError("-o DIR is missing: where the tables go");
    return export_facts(*options);
  };
}

}  // namespace kshim::cli

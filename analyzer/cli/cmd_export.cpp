// SPDX-License-Identifier: Apache-2.0
// kshim export: reports as flat tables, and what files ask of a GPU.
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
#include "analyzer/export/open_metrics.h"
#include "analyzer/verbs/processes.h"
#include "analyzer/verbs/requirements.h"

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

/// `unread` becomes true where a file could not be read whole.
Served served_by(const std::vector<std::string>& paths, bool& unread) {
  ScanRequest wanted;
  wanted.targets = known_gpus();
  Scan found;
  {
    ProgressBar bar("scanning");
    wanted.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    found = verbs::scan({paths.begin(), paths.end()}, wanted);
  }
  print_errors(mapped(found.notes, &ReadNote::text), false);
  if (found.objects.empty())
    throw UserError("there is no device code in what was named", exit_status::kNoInput);
  unread = unread || found.named_unread;
  return served_by(found);
}

std::string declared_text(const std::string& text) {
  if (!text.starts_with('@')) return text;
  constexpr std::size_t kMax = 1U << 20;
  const auto content = files::read_whole(text.substr(1), kMax);
  if (!content) throw UserError(fmt::format("--declared {}: cannot be read", sanitize(text)));
  return *content;
}

/// A line for what is kept, and one for each difference. Whether all is kept.
bool compare(const Served& served, const Declaration& declared, std::string& text) {
  const Difference difference = verify(served, declared);
  std::vector<std::string> conditions = declared.conditions;
  for (const std::string& driver : declared.drivers) conditions.push_back("CUDA " + driver);
  const std::string what = sanitize(fmt::format("{} ({})", declared.source, fmt::join(conditions, ", ")));
  if (difference.broken.empty()) text += fmt::format("ok: {}: the files have what is declared\n", what);
  for (const auto& [word, is, list] : {std::tuple("error", "promised and not there", &difference.broken),
                                       std::tuple("note", "there and not promised", &difference.unused)})
    if (!list->empty())
      text += fmt::format("{}: {}: {}: {}\n", word, what, is,
                          sanitize(fmt::format("{}", fmt::join(*list, ", "))));
  return difference.broken.empty();
}

constexpr std::string_view kOpenMetrics = "openmetrics";
/// Those of To in its order, and one more.
constexpr std::string_view kSystems[] = {"nvidia-require", "nfd", "wheel-variant", "conda", kOpenMetrics};

int export_requirements(const ExportOptions& options) {
  std::optional<To> to;
  if (!options.to.empty())
    to = static_cast<To>(std::ranges::find(kSystems, options.to) - std::begin(kSystems));
  if (options.declared && !to)
    throw UserError("--declared needs --to SYSTEM: the system whose notation it is");
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  bool unread = false;
  bool kept = true;
  std::string text;
  if (options.declared) {
    const auto declared = declaration_of(*to, declared_text(*options.declared));
    kept = compare(served_by(options.paths, unread), declared, text);
  } else if (!options.verify) {
    const Served served = served_by(options.paths, unread);
    // Nothing in a requirement means every GPU.
    if (std::ranges::none_of(served.runs, [](bool runs) { return runs; }))
      throw UserError(
          "there is no GPU that all of these files have code for: nothing to require; "
          "kshim scan says what each file has",
          exit_status::kFindings);
    text = requirement_text(served, *to);
  } else {
    // Each by itself: one wheel does not keep what another promises.
    for (const std::string& path : options.paths) {
      auto declared = declared_by(path);
      if (to) std::erase_if(declared, [&](const auto& each) { return each.to != *to; });
      if (declared.empty())
        throw UserError(
            fmt::format("--verify {}: declares nothing on GPUs (a wheel's variant.json, a conda package's "
                        "__cuda_arch or __cuda, an image's NVIDIA_REQUIRE_*); --to SYSTEM --declared TEXT "
                        "says what is "
                        "promised",
                        sanitize(path)),
            exit_status::kNoInput);
      const Served served = served_by({path}, unread);
      for (const Declaration& each : declared) kept = compare(served, each, text) && kept;
    }
  }
  output.write(text);
  return kept && !unread ? exit_status::kOk : exit_status::kFindings;
}

int export_open_metrics(const ExportOptions& options) {
  if (options.verify || options.declared)
    throw UserError("--to openmetrics: there is nothing to compare; leave out --verify and --declared");
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  std::vector<std::string> notes;
  const std::string text = open_metrics({options.paths.begin(), options.paths.end()}, notes);
  print_errors(notes, false);
  output.write(text);
  return exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_export(Arguments& arguments) {
  auto options = std::make_shared<ExportOptions>();
  arguments.add_rest("PATH", options->paths)->required();
  arguments.add("-o,--output", options->output);
  arguments.add("--to", options->to)->check(one_of({std::begin(kSystems), std::end(kSystems)}));
  arguments.add("--verify", options->verify);
  arguments.add("--declared", options->declared);
  arguments.add("--zstd", options->zstd);
  arguments.add("--watch", options->watch);
  arguments.add("-j,--jobs", options->jobs);
  arguments.add("--settle", options->settle_s);
  return [options] {
    if (options->to == kOpenMetrics) return export_open_metrics(*options);
    if (!options->to.empty() || options->verify || options->declared) return export_requirements(*options);
    if (options->output.empty()) throw UserError("-o DIR is missing: where the tables go; or --to SYSTEM");
    return export_facts(*options);
  };
}

}  // namespace kshim::cli

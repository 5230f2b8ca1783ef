// SPDX-License-Identifier: Apache-2.0
// kshim scan: what files are built for, without running them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/cli/architectures.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/output.h"
#include "analyzer/cli/progress.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/core/text.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/diagnose/file_coverage.h"
#include "analyzer/input/files/walk.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/verbs/old_driver.h"
#include "analyzer/verbs/scan.h"

namespace kshim::cli {
namespace {

struct ScanOptions {
  std::string format = "text";
  std::string output;
  std::vector<std::string> targets;
  std::optional<std::string> driver;  ///< an empty one is a mistake
  std::string fail_on = "error";
  unsigned jobs = 0;
  bool kernels = false;
  bool full = false;
  bool verbose = false;
  bool list_gpus = false;
  std::vector<std::string> paths;
};

/// Each GPU once, whatever it was called. A GPU has no suffix; who writes sm_90a means the one that runs it.
std::vector<image::Arch> gpus_of(const std::vector<image::Arch>& archs,
                                 const std::vector<std::string>& texts) {
  const auto refuse = [](std::string_view what, image::Arch arch) {
    throw UserError(fmt::format("--target: {} is no GPU; give {} or {}", what,
                                image::to_name(image::ImageKind::cubin, {arch.cc, {}}).view(),
                                image::to_name(arch.cc).view()));
  };
  std::vector<image::Arch> gpus;
  for (const image::Arch& arch : archs) {
    const unsigned least = arch.suffix == image::Suffix::f ? 100 : 90;  // the first with such images
    if (arch.suffix != image::Suffix::none && arch.cc.number() < least)
      refuse(image::to_name(image::ImageKind::cubin, arch).view(), arch);
    const image::Arch gpu{arch.cc, image::Suffix::none};
    if (std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) gpus.push_back(gpu);
  }
  for (const std::string& text : texts) {
    if (text.find("lto_") != std::string::npos) refuse("LTO-IR (lto_...)", gpus.front());
  }
  return gpus;
}

scan::Options to_scan(const ScanOptions& options) {
  scan::Options result;
  result.targets = gpus_of(parse_archs("--target", options.targets), options.targets);
  if (result.targets.size() > analysis::kMostTargets)
    throw UserError(fmt::format("--target: {} are named, {} are the most", result.targets.size(),
                                analysis::kMostTargets));
  if (options.driver) result.driver = parse_driver("--driver", *options.driver);
  result.kernels = options.kernels;
  result.jobs = options.jobs;
  return result;
}

int status_of(const scan::Scan& scan, const std::string& fail_on) {
  const auto limit = fail_on == "warning" ? analysis::Severity::warning : analysis::Severity::error;
  const bool found = std::any_of(scan.findings.begin(), scan.findings.end(),
                                 [&](const analysis::Finding& finding) { return finding.severity >= limit; });
  // What was not read was not judged: no green light for it.
  const bool unread = scan.named_unread || (limit == analysis::Severity::warning && scan.incomplete());
  return found || unread ? exit_status::kFindings : exit_status::kOk;
}

/// A file of a folder to scan is not named: `-o kernels.o build/` is a slip of the pen. What a scan writes is
/// never device code nor an archive.
void refuse_to_overwrite(const Output& output, const std::string& path) {
  const std::string first = output.first_bytes(scan::kFirstBytes);
  const Bytes bytes{reinterpret_cast<const std::byte*>(first.data()), first.size()};
  // Without its name, which may be foo.ptx.
  if (scan::file_kind(bytes, {}, true) != scan::FileKind::other)
    throw UserError(
        fmt::format("--output {}: holds device code or is an archive; it is not overwritten", path));
}

int scan_paths(const ScanOptions& options) {
  const auto format = analysis::parse_format(options.format);
  if (!format.has_value()) {
    throw UserError(fmt::format("--format: `{}` is not a format; there are {}",
                                analysis::harmless(options.format), analysis::format_names()));
  }
  scan::Options scan_options = to_scan(options);
  Output output(options.output, STDOUT_FILENO, exit_status::kMisuse);
  for (const std::string& path : options.paths) {
    if (output.is_same_file(path))
      throw UserError(fmt::format("--output {}: is one of the files to scan", path));
  }
  refuse_to_overwrite(output, options.output);
  scan::Scan result;
  {
    ProgressBar bar("scanning");
    scan_options.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    result = scan::scan({options.paths.begin(), options.paths.end()}, scan_options);
  }
  // First of all: no file makes up for it.
  std::vector<analysis::Finding> old = scan::old_driver_findings(result.targets, result.driver);
  result.findings.insert(result.findings.begin(), std::make_move_iterator(old.begin()),
                         std::make_move_iterator(old.end()));
  if (result.nothing_readable) {
    print_errors(result.notes, options.verbose);
    return exit_status::kNoInput;
  }
  const bool terminal = output.is_stream() && isatty(STDOUT_FILENO) == 1;
  output.write(scan::render(result, *format,
                            {.colour = output.is_stream() && wants_colour(STDOUT_FILENO),
                             .unicode = wants_unicode(),
                             .width = terminal ? terminal_width(STDOUT_FILENO) : kPageWidth,
                             .verbose = options.verbose,
                             .full = options.full}));
  return status_of(result, options.fail_on);
}

int list_gpus() {
  for (const analysis::GpuRow& row : analysis::gpus()) {
    std::vector<std::string> names;
    for (const analysis::GpuNameRow& name : analysis::knowledge().gpu_names)
      if (name.cc == row.cc) names.emplace_back(name.name);
    fmt::print("{:<5} {:<16} {}\n", image::to_name(row.cc).view(), row.family, fmt::join(names, ", "));
  }
  return exit_status::kOk;
}

std::function<int()> set_up(CLI::App& app) {
  auto options = std::make_shared<ScanOptions>();
  app.add_option("PATH", options->paths,
                 "files, folders, wheels, Python environments, images of containers; - is standard input")
      ->group("");
  app.add_flag("--list-gpus", options->list_gpus,
               "print the names of GPUs that --target and others take, and nothing else");
  app.add_option("--format", options->format, fmt::format("how to write it: {}", analysis::format_names()))
      ->type_name("F");
  app.add_option("-o,--output", options->output, "write there and not to stdout")->type_name("FILE");
  app.add_option("--target", options->targets,
                 "say whether it runs on these GPUs: sm_75,12.0 (a suffix as in sm_90a tells nothing of a "
                 "GPU and is dropped)")
      ->type_name("ARCHS")
      ->allow_extra_args(false);
  app.add_option(
         "--driver", options->driver,
         "with a driver for up to this CUDA version, or of this branch: 12.8, 580 (default: the newest)")
      ->type_name("X.Y");
  app.add_flag("--kernels", options->kernels, "name kernels, and judge each of them; reads all payloads");
  app.add_option("--fail-on", options->fail_on,
                 "exit with 1 for findings of this severity: error (default), warning")
      ->type_name("SEVERITY")
      ->check(CLI::IsMember({"error", "warning"}));
  app.add_option("-j,--jobs", options->jobs, "threads (default: one a core)")->type_name("N");
  app.add_flag("--full", options->full, "do not shorten home, host and UUID in markdown and html");
  app.add_flag("-v,--verbose", options->verbose, "every file, finding, kernel and note");
  return [options] {
    if (options->list_gpus) return list_gpus();
    if (options->paths.empty())
      throw UserError("something is missing: kshim scan [OPTIONS] PATH...; see `kshim scan --help`");
    return scan_paths(*options);
  };
}

}  // namespace

Command scan_command() {
  return {
      .name = "scan",
      .synopsis = "say what files are built for, and whether that runs on given GPUs",
      .usage = "[OPTIONS] PATH...",
      .details =
          "Reads executables, libraries, objects, archives, cubins, fatbins, PTX, wheels (without unpacking "
          "them), folders, Python environments and images of containers (docker-archive, OCI layout as a "
          "folder "
          "or archive). Needs no GPU, driver or toolkit, and runs nothing.",
      .example =
          "  kshim scan build/libfoo.so\n"
          "  kshim scan --target 7.5,8.6,9.0,12.0 dist/*.whl\n"
          "  kshim scan --target sm_120 --driver 12.8 --format sarif -o scan.sarif venv/\n"
          "  kshim scan --kernels --target sm_70 vllm/_C.abi3.so\n"
          "  podman save vllm/vllm | kshim scan --target sm_121 -\n",
      .footer =
          "Exit status: 0 nothing wrong, 1 findings of severity error (of warning, with --fail-on warning) "
          "or a "
          "named file that could not be read whole (with --fail-on warning: any file), 2 wrong arguments, 3 "
          "nothing readable in what was named.",
      .set_up = set_up};
}

}  // namespace kshim::cli

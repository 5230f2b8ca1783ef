// SPDX-License-Identifier: Apache-2.0
// kshim scan: what files are built for, without running them.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/data/knowledge_file.h"
#include "analyzer/input/machine/facts.h"
#include "analyzer/render/scan/render.h"
#include "analyzer/verbs/doctor.h"
#include "analyzer/verbs/expect.h"
#include "analyzer/verbs/package_fetch.h"
#include "analyzer/verbs/report_files.h"
#include "analyzer/verbs/scan_parts.h"
#include "kshim/image/compute_capability.h"

namespace kshim::cli {
using core::contains;
using core::sanitize;
using core::Severity;
using core::UserError;
using input::this_machine;
using render::Format;
using verbs::Expectation;
using verbs::FetchRequest;
using verbs::Scan;
using verbs::ScanRequest;
namespace exit_status = core::exit_status;

namespace {

struct ScanOptions {
  Written written;
  std::vector<std::string> targets;
  std::optional<std::string> driver;  ///< an empty one is a mistake
  std::string fail_on = "error";
  unsigned jobs = 0;
  bool kernels = false;
  bool list_gpus = false;
  std::optional<std::string> expect;  ///< an empty one is a mistake
  std::optional<std::string> ptx_floor;
  std::optional<std::string> budget;
  std::optional<std::string> config;
  bool exactly = false;
  bool sass = false;
  bool sizes = false;
  bool sha256 = false;
  std::string python;    ///< of a package that is fetched
  std::string platform;  ///< the same
  std::string max_download = "4G";
  std::optional<std::string> pid;  ///< an empty one is a mistake
  std::string root;
  std::vector<std::string> paths;
};

/// Each GPU once, whatever it was called. A GPU has no suffix; `sm_90a` means the GPU that runs it.
std::vector<image::Arch> gpus_of(const std::vector<image::Arch>& archs,
                                 const std::vector<std::string>& texts) {
  const auto refuse = [](std::string_view what, image::Arch arch) {
    throw UserError(
        fmt::format("--target: {} is no GPU; give {} or {}", what, sm_name(arch.cc), name(arch.cc)));
  };
  std::vector<image::Arch> gpus;
  for (const image::Arch& arch : archs) {
    const unsigned least = arch.suffix == image::Suffix::f ? 100 : 90;  // the first with such images
    if (arch.suffix != image::Suffix::none && arch.cc.number() < least) refuse(sm_name(arch), arch);
    const image::Arch gpu{arch.cc, image::Suffix::none};
    if (!contains(gpus, gpu)) gpus.push_back(gpu);
  }
  for (const std::string& text : texts) {
    if (contains(text, "lto_")) refuse("LTO-IR (lto_...)", gpus.front());
  }
  return gpus;
}

ScanRequest to_scan(const ScanOptions& options) {
  ScanRequest result;
  result.targets = gpus_of(parse_archs("--target", options.targets), options.targets);
  if (result.targets.size() > diagnose::kMaxTargets)
    throw UserError(
        fmt::format("--target: {} are named, {} are the most", result.targets.size(), diagnose::kMaxTargets));
  if (options.driver) result.driver = data::parse_driver("--driver", *options.driver);
  result.kernels = options.kernels || options.sizes;
  result.sizes = options.sizes;
  result.sha256 = options.sha256;
  result.jobs = options.jobs;
  return result;
}

int status_of(const Scan& scan, const std::string& fail_on) {
  const auto limit = fail_on == "warning" ? Severity::warning : Severity::error;
  const bool found =
      std::ranges::any_of(scan.findings, [&](const core::Finding& each) { return each.severity >= limit; }) ||
      std::ranges::any_of(scan.checks, [&](const input::Check& each) { return each.severity >= limit; });
  // What was not read was not judged: no green light for it.
  const bool strict = scan.held || limit == Severity::warning;
  const bool unread = scan.undecided() || (strict && scan.incomplete());
  return found || unread ? exit_status::kFindings : exit_status::kOk;
}

/// What the files are held to: of a configuration, with what the options say instead.
Expectation expectation_of(const ScanOptions& options) {
  const bool asked = options.expect || options.budget || options.ptx_floor;
  const bool quiet = !options.targets.empty() && !asked;  // "would it run" is another question
  const std::string path = options.config ? *options.config : quiet ? std::string() : verbs::find_config();
  Expectation out = path.empty() && !options.config ? Expectation() : verbs::read_config(path);
  if (options.expect) {
    out.all.list = verbs::parse_arch_list(*options.expect, {"--expect"});
    out.all.source = "--expect";
  }
  if (options.ptx_floor) out.all.ptx_floor = verbs::parse_gpu(*options.ptx_floor, {"--ptx-floor"});
  if (options.budget) out.budget = verbs::parse_budget(*options.budget, {"--budget"});
  if (out.all.source.empty()) out.all.source = options.ptx_floor ? "--ptx-floor" : "--budget";
  if (options.exactly) out.all.exactly = true;
  if (options.sass) out.all.form = verbs::Form::sass;
  if (!out.files.empty() && out.all.list.empty() && !out.all.ptx_floor)
    throw UserError(fmt::format(
        "{}: has rules for some files, and nothing for the others; write expect = \"8.0 9.0+PTX\"", path));
  if (!out.asks() && options.config)
    throw UserError(fmt::format(
        "--config {}: says nothing that files are held to; write expect = \"8.0 9.0+PTX\"", path));
  if (!out.asks() && (options.exactly || options.sass))
    throw UserError("--exactly and --sass say how --expect is meant: give --expect LIST");
  return out;
}

/// The site-packages of the environment that VIRTUAL_ENV or CONDA_PREFIX names, else of that of the first
/// Python in PATH, where no path is named.
std::vector<std::filesystem::path> paths_of(const ScanOptions& options) {
  if (!options.root.empty()) {
    const std::filesystem::path root = parse_root(options.root);
    std::vector<std::filesystem::path> out;
    for (const std::string& path : options.paths)
      out.push_back(root / std::filesystem::path(path).relative_path());
    if (out.empty()) out.push_back(root);
    return out;
  }
  if (!options.paths.empty()) return {options.paths.begin(), options.paths.end()};
  const input::Machine machine = this_machine();
  std::string first = in_path(machine, "python3");
  if (first.empty()) first = in_path(machine, "python");
  for (const std::string& prefix :
       {std::string(machine.env("VIRTUAL_ENV")), std::string(machine.env("CONDA_PREFIX")),
        std::filesystem::path(first).parent_path().parent_path().string()}) {
    if (prefix.empty()) continue;
    for (const input::Python& python : find_pythons(machine, prefix)) {
      if (python.folders.empty()) continue;
      print_note(fmt::format("the packages of {}", python.interpreter));
      return {python.folders.begin(), python.folders.end()};
    }
  }
  throw UserError("no PATH is given, and no Python with packages is active; see `kshim scan --help`",
                  exit_status::kNoInput);
}

/// The files that a process has mapped.
Scan scan_process(const ScanOptions& options, ScanRequest request) {
  if (!options.paths.empty()) throw UserError("--pid names the files: those of the process; give no PATH");
  ProgressBar bar("scanning");
  request.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
  return examine(input::LiveProcess(*options.pid), std::move(request)).packages;
}

/// Those of this machine whose compute capability is known, each once, and its driver.
void use_gpus_here(const ScanOptions& options, ScanRequest& scan_options) {
  const input::Machine machine = this_machine();
  const input::Loader loader(machine);
  input::MachineFacts facts;
  facts.place = look_at_place(machine);
  find_gpus(machine, loader, facts);
  std::vector<std::string> names;
  for (const input::Gpu& gpu : facts.gpus) {
    const image::Arch arch{gpu.cc.value_or(image::ComputeCapability{}), image::Suffix::none};
    if (!gpu.cc || contains(scan_options.targets, arch)) continue;
    scan_options.targets.push_back(arch);
    names.push_back(fmt::format("{} ({})", gpu.name, name(*gpu.cc)));
  }
  if (!options.driver) scan_options.driver = facts.driver.cuda;
  if (!names.empty()) {
    print_note(fmt::format("judged for the GPUs here: {}", core::enumerate(names)));
  } else if (options.paths.empty()) {
    print_note("there is no GPU here: --target sm_86 or --target \"RTX 5090\" says what runs on one");
  }
}

/// A file of a folder to scan is not named: `-o kernels.o build/` is a slip of the pen. What a scan writes is
/// never device code nor an archive.
void refuse_to_overwrite(const Output& output, const std::string& path) {
  const std::string first = output.first_bytes(input::kFirstBytes);
  const Bytes bytes{reinterpret_cast<const std::byte*>(first.data()), first.size()};
  // Without its name, which may be foo.ptx.
  const input::FileKind kind = input::file_kind(bytes, {}, bytes.size());
  if (kind == input::FileKind::device_code || kind == input::FileKind::container)
    throw UserError(
        fmt::format("--output {}: holds device code or is an archive; it is not overwritten", path));
}

/// Packages to fetch. A word that names a file is that file; both kinds in one question would mix what is
/// here with what is not.
bool asks_for_packages(const ScanOptions& options) {
  const bool asked = !options.python.empty() || !options.platform.empty();
  const auto is_package = [asked](const std::string& word) { return verbs::is_requirement(word, asked); };
  const auto packages = std::ranges::count_if(options.paths, is_package);
  if (packages == 0) {
    if (asked) throw UserError("--python and --platform are for packages that are fetched: kshim scan NAME");
    return false;
  }
  if (static_cast<std::size_t>(packages) == options.paths.size()) return true;
  const auto file = std::ranges::find_if_not(options.paths, is_package);
  throw UserError(fmt::format("{} is a package to fetch and {} is a path: ask for them one after the other",
                              sanitize(*std::ranges::find_if(options.paths, is_package)), sanitize(*file)));
}

FetchRequest to_fetch(const ScanOptions& options) {
  const input::Machine machine = this_machine();
  FetchRequest request;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix(machine.env(variable));
    const std::string python = prefix + "/bin/python";
    if (!prefix.empty() && request.interpreter.empty() && ::access(python.c_str(), X_OK) == 0)
      request.interpreter = python;
  }
  for (const char* name : {"python3", "python"})
    if (request.interpreter.empty()) request.interpreter = in_path(machine, name);
  if (request.interpreter.empty())
    throw UserError("a package is fetched by pip, and no Python is active or in PATH", exit_status::kNoInput);
  request.python = options.python;
  request.platform = options.platform;
  const auto most = core::parse_size(options.max_download);
  if (!most)
    throw UserError(
        fmt::format("--max-download: `{}` is no size; write 500M or 2G", sanitize(options.max_download)));
  request.max_bytes = *most;
  return request;
}

/// uv fetches for a Python that has no pip.
void choose_installer(FetchRequest& request) {
  if (verbs::has_pip(request.interpreter)) return;
  request.uv = in_path(this_machine(), "uv");
  if (request.uv.empty())
    throw UserError(fmt::format("a package is fetched by pip or uv: {} has no pip, and no uv is in PATH",
                                request.interpreter),
                    exit_status::kNoInput);
}

int scan_paths(const ScanOptions& options) {
  if (!options.root.empty() && options.pid)
    throw UserError("--pid names the process, with its files: give no --root");
  const bool fetches = options.root.empty() && asks_for_packages(options);
  ScanRequest scan_options = to_scan(options);
  const Expectation expectation = expectation_of(options);
  if (expectation.asks()) scan_options.expectation = &expectation;
  if (!options.root.empty()) scan_options.root = parse_root(options.root);
  std::vector<std::filesystem::path> paths =
      fetches || options.pid ? std::vector<std::filesystem::path>() : paths_of(options);
  if (options.targets.empty() && !expectation.asks() && !options.pid) use_gpus_here(options, scan_options);
  Output output(options.written.output, STDOUT_FILENO, exit_status::kMisuse);
  output.refuse_inputs(options.paths, "the files to scan");
  refuse_to_overwrite(output, options.written.output);
  const core::TemporaryFolder folder;  // of what is fetched: gone when this ends
  render::RenderOptions how = render_options(output, options.written);
  if (output.is_stream() && isatty(STDOUT_FILENO) != 1) how.width = kWholeLines;
  verbs::Fetched fetched;
  if (fetches) {
    FetchRequest request = to_fetch(options);
    choose_installer(request);
    for (const std::string& word : options.paths) {
      request.requirement = word;
      fetched = fetch_wheel(request, folder);
      paths.emplace_back(fetched.name);
    }
    // What is said of a wheel names the wheel, and no folder that is gone.
    if (::chdir(folder.path().c_str()) != 0)
      throw UserError("the temporary folder is gone", exit_status::kNoInput);
  }
  Scan result;
  if (options.pid) {
    result = scan_process(options, scan_options);
  } else {
    ProgressBar bar("scanning");
    scan_options.progress = [&bar](std::uint64_t done, std::uint64_t total) { bar.update(done, total); };
    result = verbs::scan(paths, scan_options);
  }
  if (result.objects.empty())
    for (const std::string& path : options.paths)
      if (verbs::holds_reports(path))
        throw UserError(
            fmt::format(
                "{}: holds reports of what ran, not files with device code; `kshim analyze {}` reads them",
                sanitize(path), core::shell_quote(path)),
            exit_status::kNoInput);
  if (result.nothing_readable) {
    print_errors(core::mapped(all_notes(result), &input::ReadNote::text), options.written.verbose);
    return exit_status::kNoInput;
  }
  if (options.paths.size() == 1) result.companions = std::move(fetched.companions);
  output.write(rendered(result, options.written.format, how));
  return status_of(result, options.fail_on);
}

/// The names of code that the newest driver takes for a GPU by itself: as it is, or compiled.
std::vector<std::string> code_for(image::ComputeCapability gpu, image::Choice how) {
  std::vector<std::string> out;
  for (const image::ImageKind kind :
       {image::ImageKind::cubin, image::ImageKind::ptx, image::ImageKind::ltoir, image::ImageKind::tileir}) {
    for (const image::PtxTargetRow& row : image::compat_tables().targets) {
      const image::Arch arch{image::ComputeCapability::from_number(row.number), row.suffix};
      const std::array one = {image::Candidate{kind, arch, {}}};
      if (image::select_image(one, {.device = gpu, .driver = {}, .jit = {}}).choice == how)
        out.emplace_back(image::to_name(kind, arch).view());
    }
  }
  return out;
}

/// The earliest GPU whose machine code this one runs.
std::string earliest_for(image::ComputeCapability gpu) {
  image::ComputeCapability out = gpu;
  for (const data::GpuRow& row : data::gpus()) {
    const std::array build = {image::Candidate{image::ImageKind::cubin, {row.cc, image::Suffix::none}, {}}};
    if (image::select_image(build, {.device = gpu, .driver = {}, .jit = {}}).choice == image::Choice::sass)
      out = std::min(out, row.cc);
  }
  return std::string(image::to_name(out).view());
}

/// With the CUDA releases that drivers serve.
int list_gpus(const Written& written) {
  Output output(written.output, STDOUT_FILENO, exit_status::kMisuse);
  std::string text;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const data::GpuRow& row : data::gpus()) {
    std::vector<std::string> names;
    for (const data::GpuNameRow& name : data::gpu_names())
      if (name.cc == row.cc) names.emplace_back(name.name);
    const std::string cc(image::to_name(row.cc).view());
    text += fmt::format("{:<5} {:<16} {}\n", cc, row.family, fmt::join(names, ", "));
    rows.push_back({{"compute_capability", cc},
                    {"family", row.family},
                    {"tegra", image::is_tegra(row.cc)},
                    {"names", names},
                    {"runs", code_for(row.cc, image::Choice::sass)},
                    {"compiles", code_for(row.cc, image::Choice::jit)},
                    {"earliest", earliest_for(row.cc)}});
  }
  if (written.format == Format::json) {
    std::vector<std::string> releases;
    for (const image::PtxIsaRow& row : image::compat_tables().isas) releases.push_back(name(row.cuda));
    nlohmann::ordered_json first;
    for (const image::PtxTargetRow& row : image::compat_tables().targets) {
      const image::Arch arch{image::ComputeCapability::from_number(row.number), row.suffix};
      first[std::string(image::to_name(image::ImageKind::ptx, arch).view())] = image::to_name(row.isa).view();
    }
    text = nlohmann::ordered_json{{"gpus", rows}, {"cuda", releases}, {"ptx", first}}.dump(2) + '\n';
  }
  output.write(text);
  return exit_status::kOk;
}

}  // namespace

std::function<int()> set_up_scan(Arguments& arguments) {
  auto options = std::make_shared<ScanOptions>();
  arguments.add_rest("PATH", options->paths);
  arguments.add("--list-gpus", options->list_gpus);
  arguments.add(options->written);
  arguments.add("--target", options->targets);
  arguments.add("--driver", options->driver);
  arguments.add("--expect", options->expect);
  arguments.add("--exactly", options->exactly);
  arguments.add("--sass", options->sass);
  arguments.add("--ptx-floor", options->ptx_floor);
  arguments.add("--budget", options->budget);
  arguments.add("--config", options->config);
  arguments.add("--sizes", options->sizes);
  arguments.add("--kernels", options->kernels);
  arguments.add("--sha256", options->sha256);
  arguments.add("--python", options->python);
  arguments.add("--platform", options->platform);
  arguments.add("--max-download", options->max_download);
  arguments.add("--root", options->root);
  arguments.add("--pid", options->pid);
  arguments.add("--fail-on", options->fail_on)->check(one_of({"error", "warning"}));
  arguments.add("-j,--jobs", options->jobs);
  arguments.add("--full", options->written.full);
  arguments.add("-v,--verbose", options->written.verbose);
  return [options] { return options->list_gpus ? list_gpus(options->written) : scan_paths(*options); };
}

}  // namespace kshim::cli

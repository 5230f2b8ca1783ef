// SPDX-License-Identifier: Apache-2.0
// kshim run: CMD under the shim, then the analysis of what its processes recorded.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "analyzer/cli/arguments.h"
#include "analyzer/cli/self.h"
#include "analyzer/cli/terminal.h"
#include "analyzer/render/render.h"
#include "analyzer/run/child.h"
#include "analyzer/run/run_folder.h"
#include "analyzer/run/watch.h"
#include "analyzer/verbs/add_records.h"
#include "analyzer/verbs/failed_start.h"
#include "kshim/files/open_file.h"

namespace kshim::cli {
using run::ChildOutcome;
using run::Environment;
namespace exit_status = core::exit_status;

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTyped = 400;

struct RunOptions {
  std::vector<std::string> simulate;
  std::vector<std::string> target;
  std::string report;
  std::string fail_on;
  std::string status = "child";
  std::string timeout;
  Written written;
  bool audit = false;
  bool injection = false;
  bool no_capture = false;
  bool no_driver_log = false;
  std::vector<std::string> command;
};

core::UserError failed(const std::string& text) { return core::UserError(text, exit_status::kRunFailed); }

/// CMD and its arguments, from what is left behind the options.
std::vector<std::string> program_in(std::vector<std::string> rest) {
  if (!rest.empty() && rest.front() == "--") {
    rest.erase(rest.begin());
  } else if (!rest.empty() && rest.front().substr(0, 1) == "-") {
    throw failed(fmt::format("unknown option `{}`; see `kshim run --help`", rest.front()));
  }
  if (rest.empty()) throw failed("nothing to run; name the program: kshim run [OPTIONS] -- CMD ...");
  return rest;
}

std::chrono::milliseconds parse_timeout(const std::string& text) {
  constexpr double kMax = 1e9;  // 31 years, and no overflow in milliseconds
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || !(seconds > 0) || seconds > kMax) {
    throw failed(fmt::format("--timeout {}: give seconds, such as 600 or 0.5", text));
  }
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

// ld.so(8) splits LD_PRELOAD at spaces and colons and knows no quoting; LD_LIBRARY_PATH at colons and
// semicolons.
fs::path require(const Located& located, std::string_view what, std::string_view separators,
                 std::string_view hint) {
  if (located.path.empty())
    throw failed(
        fmt::format("{} is not installed beside this command{}; {}", what, hint, search_of(located)));
  if (located.path.string().find_first_of(separators) != std::string::npos) {
    throw failed(
        fmt::format("{}: the loader cannot take a path with one of `{}` in it; move kshim to another folder",
                    located.path.string(), separators));
  }
  return located.path;
}

/// Names of functions that the simulator lacks and a process called; it appends to the file.
class SimulatorGaps {
 public:
  SimulatorGaps() {
    std::string path = (fs::temp_directory_path(error_) / "kshim-gaps-XXXXXX").string();
    const int file = ::mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) return;
    ::close(file);
    path_ = path;
  }
  SimulatorGaps(const SimulatorGaps&) = delete;
  SimulatorGaps& operator=(const SimulatorGaps&) = delete;
  ~SimulatorGaps() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  const std::string& path() const noexcept { return path_; }
  /// One sentence; empty where none was called.
  std::string note() const {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    const std::vector<std::string> lines = core::split(files::read_whole(path_, kMost).value_or(""), "\n");
    std::set<std::string> names(lines.begin(), lines.end());
    names.erase("");
    if (names.empty()) return {};
    return fmt::format(
        "the simulator does not have {} and answered 801 (not supported), which a driver need not: the "
        "program "
        "may have ended because of that",
        core::join(std::vector<std::string>(names.begin(), names.end()), ", "));
  }

 private:
  std::error_code error_;
  std::string path_;
};

/// The driver's error log (CUDA 12.9 and later) of all processes: it speaks also where the shim is not. A
/// file that the caller named is the caller's.
class DriverLog {
 public:
  DriverLog(bool off, const run::RunFolder& folder, Environment& environment) {
    if (off || environment.has("CUDA_LOG_FILE")) return;
    path_ = (fs::absolute(folder.path()) / (folder.run_id() + ".driver.log")).lexically_normal().string();
    environment.set("CUDA_LOG_FILE", path_);
  }
  const std::string& path() const noexcept { return path_; }
  std::string text() const {
    constexpr std::size_t kMost = std::size_t{4} << 20;
    return path_.empty() ? "" : files::read_up_to(path_, kMost).value_or("");
  }
  /// A finding that rests on it names its lines.
  void keep_if_quoted(const verbs::Analysis& analysis) const {
    const bool quoted = std::ranges::any_of(analysis.findings, [&](const core::Finding& finding) {
      return std::ranges::any_of(finding.evidence,
                                 [&](const core::Evidence& row) { return row.at.file == path_; });
    });
    if (!quoted && !path_.empty()) ::unlink(path_.c_str());
  }

 private:
  std::string path_;
};

void add_simulator(const run::Simulation& simulation, Environment& environment) {
  const fs::path folder = require(find_simulator(), "the simulator", ":;",
                                  " (component `simulator`; with pip: kshim[simulator])");
  environment.prepend("LD_LIBRARY_PATH", folder.string(), ':');
  environment.set("KSHIM_SIM_DEVICES", simulation.devices);
  if (!simulation.driver.empty()) environment.set("KSHIM_SIM_DRIVER", simulation.driver);
  // The driver's table is known here: loads of runtimes before 12 are watched.
  if (environment.get("KSHIM_PATCH_TABLE").empty()) environment.set("KSHIM_PATCH_TABLE", "1");
}

/// The driver takes one library: the one that was named before is loaded by ours.
void add_injection(Environment& environment) {
  constexpr std::string_view kVariable = "CUDA_INJECTION64_PATH";
  const std::string path = require(find_injection(), "libkshim-injection.so", "", "").string();
  const std::string before(environment.get(kVariable));
  if (before == path) return;
  if (before.empty())
    environment.remove("KSHIM_INJECTION_NEXT");
  else
    environment.set("KSHIM_INJECTION_NEXT", before);
  environment.set(kVariable, path);
}

Environment make_environment(const fs::path& program, const run::RunFolder& folder, const run::Watch& watch,
                             bool audit, bool injection) {
  Environment environment = Environment::current();
  const fs::path shim = require(find_shim(), "libkshim.so", ": ", "");
  if (!device_code::must_not_preload(program)) {
    environment.set("LD_PRELOAD", run::merge_preload(environment.get("LD_PRELOAD"), shim.string()));
    if (audit)
      environment.append("LD_AUDIT", require(find_audit(), "libkshim-audit.so", ":", "").string(), ':');
  }
  if (injection) add_injection(environment);
  // gcc's AddressSanitizer ends a program whose first library is not its own runtime, unless told otherwise.
  if (device_code::wants_asan(program)) environment.append("ASAN_OPTIONS", "verify_asan_link_order=0", ':');
  environment.set("KSHIM_REPORT", folder.pattern());
  environment.set("KSHIM_RUN_ID", folder.run_id());
  environment.set("KSHIM_RUN_SOCKET", watch.socket_path());
  // The analysis follows; what the shim would say meanwhile says less. Its own trouble is still reported.
  if (environment.get("KSHIM_LOG").empty()) environment.set("KSHIM_LOG", "error");
  return environment;
}

/// The exit status, where CMD decides it; none where the findings do.
std::optional<int> status_of_child(const RunOptions& options, const ChildOutcome& outcome) {
  const bool gate = options.status == "findings" || !options.fail_on.empty();
  int status = outcome.exit_status.value_or(exit_status::kSignalBase + outcome.term_signal.value_or(0));
  if (outcome.timed_out && status == exit_status::kOk) status = exit_status::kSignalBase + SIGTERM;
  if (options.status == "findings") status = exit_status::kOk;
  return status != exit_status::kOk || !gate ? std::optional(status) : std::nullopt;
}

int judge(const RunOptions& options, const verbs::Analysis& analysis, const ChildOutcome& outcome) {
  const core::Severity threshold =
      options.fail_on == "warning" ? core::Severity::warning : core::Severity::error;
  if (const auto status = status_of_child(options, outcome)) return *status;
  if (worst(analysis) >= threshold) return exit_status::kFindings;
  if (options.fail_on == "idle" && analysis.verdict == verbs::Verdict::idle) return exit_status::kFindings;
  // A gate that could not look must not pass, nor one that has lost what it saw.
  const bool lost = std::ranges::any_of(
      analysis.processes, [](const verbs::ProcessSummary& process) { return process.lost != 0; });
  const bool blind =
      analysis.verdict == verbs::Verdict::blind || (analysis.verdict == verbs::Verdict::incomplete && lost);
  return blind ? exit_status::kRunFailed : exit_status::kOk;
}

// What the dynamic linker ends before its first instruction was not blind: it was not there. It may have been
// gone before the watch looked.
void explain_failed_start(const ChildOutcome& outcome, const fs::path& program,
                          const std::string& search_path, diagnose::RunFacts& seen) {
  constexpr int kLinkerGaveUp = 127;
  if (outcome.exit_status != kLinkerGaveUp) return;
  seen.missing = verbs::missing_at_start(program, search_path);
  if (!seen.missing.empty())
    std::erase_if(seen.blind, [&](const diagnose::BlindProcess& row) { return row.pid == outcome.pid; });
}

/// `env -i PROGRAM`: PROGRAM has nothing of our environment, and may end before a look at it.
bool clears_environment(const std::vector<std::string>& command) {
  if (core::basename_of(command.front()) != "env") return false;
  for (const std::string& word : std::span(command).subspan(1)) {
    if (word == "-" || word == "--ignore-environment") return true;
    if (!word.starts_with('-')) return false;
    if (!word.starts_with("--") && core::contains(word, 'i')) return true;
  }
  return false;
}

/// For what left no report: the same run, with all that there is to say.
std::string again_with_all(const RunOptions& options) {
  std::string out = "kshim run --format markdown";
  for (const std::string& row : options.simulate) out += " --simulate " + core::shell_quote(row);
  for (const std::string& row : options.target) out += " --target " + core::shell_quote(row);
  out += " --";
  for (const std::string& word : options.command) {
    const std::string quoted = core::shell_quote(word);
    // A script of `python -c` is too much for a line.
    if (quoted.front() == core::kNoShellWord || out.size() + quoted.size() > kMostTyped) return {};
    out += ' ' + quoted;
  }
  return out;
}

int run(const RunOptions& options) {
  diagnose::AnalysisOptions analysis_options;
  analysis_options.targets = parse_archs("--target", options.target, exit_status::kRunFailed);
  const run::Simulation simulation = run::parse_simulations(options.simulate);
  run::ChildSpec child{
      .program = run::find_program(options.command.front()), .arguments = options.command, .time_limit = {}};
  child.captures = !options.no_capture;
  if (!options.timeout.empty()) child.time_limit = parse_timeout(options.timeout);
  Output output(options.written.output, STDERR_FILENO, exit_status::kRunFailed);
  const run::RunFolder folder(options.report);
  if (!folder.remark().empty()) print_warning(folder.remark());
  run::Watch watch(run::socket_folders(folder.path()));
  if (watch.socket_path().empty())
    print_warning(
        "no folder takes a socket, neither /tmp nor TMPDIR, XDG_RUNTIME_DIR and that of the reports: "
        "processes that end at once are not watched");
  Environment environment = make_environment(child.program, folder, watch, options.audit, options.injection);
  if (!analysis_options.targets.empty())
    environment.set("KSHIM_TARGET", core::join(core::mapped(analysis_options.targets,
                                                            [](image::Arch arch) { return sm_name(arch); }),
                                               ","));
  std::optional<SimulatorGaps> gaps;
  if (!options.simulate.empty()) {
    add_simulator(simulation, environment);
    environment.set("KSHIM_SIM_GAPS", gaps.emplace().path());
  }

  const DriverLog driver_log(options.no_driver_log, folder, environment);
  const bool switched_off = environment.get("KSHIM_DISABLE") == "1";
  const std::string search_path(environment.get("LD_LIBRARY_PATH"));
  watch.start();
  on_stall({});  // CMD goes on, whatever the watch waits for
  ChildOutcome outcome = run_child(child, std::move(environment));
  on_stall(status_of_child(options, outcome).value_or(exit_status::kRunFailed));
  watch.stop();
  if (outcome.timed_out) {
    print_warning(
        fmt::format("{} was ended after {} s (--timeout)", options.command.front(), options.timeout));
  }
  std::vector<fs::path> reports = folder.reports();
  const run::Elsewhere elsewhere =
      run::find_announced(watch.announced(), reports, [&](pid_t pid) { return watch.exe_of(pid); });
  reports.insert(reports.end(), elsewhere.reports.begin(), elsewhere.reports.end());
  run::announce(reports);
  diagnose::RunFacts seen;
  seen.blind = watch.blind(outcome.pid, child.program, reports.empty());
  seen.blind.insert(seen.blind.end(), elsewhere.lost.begin(), elsewhere.lost.end());
  if (switched_off)
    seen.blind.push_back(
        {outcome.pid, child.program.string(), "KSHIM_DISABLE=1 is set: nothing is recorded"});
  if (seen.blind.empty() && reports.empty() && clears_environment(options.command))
    seen.blind.push_back({outcome.pid, child.program.string(), std::string(run::kCleared)});
  explain_failed_start(outcome, child.program, search_path, seen);
  const bool failed = outcome.exit_status.value_or(1) != exit_status::kOk;
  if (failed && reports.empty() && options.simulate.empty() && seen.missing.empty() &&
      verbs::lacks_driver(child.program, search_path))
    seen.driverless = child.program.string();
  seen.idle = watch.idle(outcome.pid, child.program, reports);
  seen.notes = watch.silent(reports);
  if (failed && gaps)
    if (std::string note = gaps->note(); !note.empty()) seen.notes.push_back(std::move(note));
  seen.exe_of = [&](long pid) {
    std::string exe = watch.exe_of(static_cast<pid_t>(pid));
    return exe.empty() && pid == outcome.pid ? fs::absolute(child.program).string() : exe;
  };
  seen.driver_log = driver_log.text();
  seen.driver_log_path = driver_log.path();
  analysis_options.judged = verbs::add_records;
  seen.pid = outcome.pid;
  for (const run::Announced& each : watch.announced())
    if (each.pid == outcome.pid) seen.last_report = each.path;
  if (child.time_limit)
    analysis_options.patience =
        std::min<std::chrono::steady_clock::duration>(analysis_options.patience, *child.time_limit);
  seen.ending = {outcome.exit_status, outcome.term_signal};
  seen.words = std::move(outcome.words);
  seen.heard = outcome.heard;
  seen.again = again_with_all(options);
  seen.started = fs::absolute(child.program).lexically_normal();
  for (const std::string& row : core::split(simulation.devices, ";"))
    if (const auto arch = image::parse_arch(row.substr(0, row.find(':')))) seen.simulated.push_back(arch->cc);
  // An empty list of GPUs is the user's own, and hides the simulated ones as well.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible != nullptr && (*visible == '\0' || *visible == '-');
  std::error_code none;
  seen.no_kernel_module =
      !options.simulate.empty() && !hidden && !fs::exists("/proc/driver/nvidia/version", none);
  const verbs::Analysis analysis = verbs::analyze(reports, analysis_options, seen);
  driver_log.keep_if_quoted(analysis);
  const bool on_stderr = output.is_stream();
  output.write(rendered(analysis, options.written.format,
                        {.color = on_stderr && wants_color(STDERR_FILENO),
                         .unicode = wants_unicode(),
                         .width = on_stderr ? terminal_width(STDERR_FILENO) : kPageWidth,
                         .verbose = false,
                         .full = options.written.full}));
  return judge(options, analysis, outcome);
}

}  // namespace

std::function<int()> set_up_run(Arguments& arguments) {
  auto options = std::make_shared<RunOptions>();
  CLI::App& app = arguments.app();
  // Not a positional option: CLI11 takes an argument such as `[a,b]` apart. This way the rest stays as it is.
  app.prefix_command();
  arguments.add("--simulate", options->simulate);
  arguments.add("--target", options->target);
  arguments.add("--report", options->report);
  arguments.add("--fail-on", options->fail_on)->check(one_of({"error", "warning", "idle"}));
  arguments.add("--status", options->status)->check(one_of({"child", "findings"}));
  arguments.add("--timeout", options->timeout);
  arguments.add(options->written);
  arguments.add("--audit", options->audit);
  arguments.add("--injection", options->injection);
  arguments.add("--no-capture", options->no_capture);
  arguments.add("--no-driver-log", options->no_driver_log);
  arguments.add("--full", options->written.full);
  return [options, &app] {
    options->command = program_in(app.remaining());
    return run(*options);
  };
}

}  // namespace kshim::cli

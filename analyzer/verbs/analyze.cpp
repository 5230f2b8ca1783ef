// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "analyzer/core/redacted.h"
#include "analyzer/diagnose/report_findings.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/compiler_failures.h"
#include "analyzer/verbs/driver_witness.h"
#include "analyzer/verbs/failed_start.h"
#include "analyzer/verbs/fleet_plans.h"
#include "analyzer/verbs/last_words.h"
#include "analyzer/verbs/pipeline.h"
#include "analyzer/verbs/program_words.h"
#include "analyzer/verbs/report_files.h"
#include "kshim/base/hash.h"
#include "kshim/report/trusted_folder.h"

namespace kshim::verbs {
using advise::AdviceCache;
using core::Cause;
using core::Finding;
using core::Severity;
using diagnose::AnalysisOptions;
using diagnose::RunFacts;
using input::ObjectFiles;
using input::Report;

namespace {

/// Whether nothing was found in it for the GPU, when it was asked for.
bool is_refused(const Report& report, const input::ModuleRecord& module) {
  constexpr int kNoImage = 209;
  return std::ranges::any_of(report.failures, [&](const input::FailureRecord& failure) {
    return failure.module == module.id && std::ranges::any_of(failure.layers, [](const input::Layer& layer) {
             return layer.code == kNoImage;
           });
  });
}

bool used_any(const Report& report, const AnalysisOptions& options) {
  // With --assume-cc, what was refused was refused for another GPU.
  const bool all_refused = !options.assume_cc && !report.modules.empty() && report.coverage.empty() &&
                           (!report.end || report.end->modules <= report.modules.size()) &&
                           std::ranges::all_of(report.modules, [&](const input::ModuleRecord& module) {
                             return module.result == 0 && is_refused(report, module);
                           });
  return !all_refused && (!report.modules.empty() || !report.failures.empty() || !report.coverage.empty() ||
                          (report.end && (report.end->modules != 0 || report.end->failures != 0)));
}

/// Whether a process initialized CUDA and none used a kernel, and what they had loaded.
class IdleProcesses {
 public:
  explicit IdleProcesses(const AnalysisOptions& options) : options_(options) {}
  void add(const Report& report) {
    used_ = used_ || used_any(report, options_);
    initialized_ = initialized_ || report.driver.has_value();
    if (used_) return mapped_.clear();
    for (const input::LibraryRecord& library : report.libraries)
      if (const std::string_view name = core::basename_of(library.path);
          mapped_.size() < kMaxMapped && !name.starts_with("libcuda.so"))
        mapped_.emplace(name);
  }
  bool all() const { return initialized_ && !used_; }
  bool used() const { return used_; }
  std::vector<std::string> mapped() const { return {mapped_.begin(), mapped_.end()}; }

 private:
  static constexpr std::size_t kMaxMapped = 256;
  const AnalysisOptions& options_;
  bool used_ = false;
  bool initialized_ = false;
  std::set<std::string> mapped_;
};

/// Which processes were started by one that used kernels, and used none themselves.
class Lineage {
 public:
  explicit Lineage(const AnalysisOptions& options) : options_(options) {}
  void add(const Report& report) {
    if (processes_.size() < kMax)
      processes_.insert_or_assign(
          static_cast<long>(report.process.pid),
          Process{static_cast<long>(report.process.ppid), used_any(report, options_)});
  }
  bool is_helper(long pid) const {
    auto at = processes_.find(pid);
    if (at == processes_.end() || at->second.used) return false;
    for (std::size_t steps = 0; steps < kMaxSteps; ++steps) {
      at = processes_.find(at->second.parent);
      if (at == processes_.end()) return false;
      if (at->second.used) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMax = 65536;
  static constexpr std::size_t kMaxSteps = 8;
  struct Process {
    long parent = 0;
    bool used = false;
  };
  const AnalysisOptions& options_;
  std::unordered_map<long, Process> processes_;
};

constexpr std::size_t kMaxDevices = 65536;
constexpr std::size_t kMaxNameLength = 256;

/// The GPUs of all reports. The same GPU seen by several processes is one GPU: by UUID, else by host, ordinal
/// and name.
class DeviceTable {
 public:
  explicit DeviceTable(std::vector<DeviceSummary>& out) : out_(out) {}
  /// `findings`: of this report.
  void add(const Report& report, const std::vector<Finding>& findings) {
    for (const input::DeviceRecord& device : report.devices) {
      const auto named = std::ranges::count_if(findings, [&](const Finding& finding) {
        return finding.severity == Severity::error &&
               std::ranges::any_of(finding.devices, [&](const core::Device& row) {
                 return row.kind == core::Device::Kind::present && row.ordinal == device.ordinal;
               });
      });
      add(report, device, static_cast<unsigned>(named));
    }
  }

  std::uint64_t left_out() const { return left_out_; }

 private:
  void add(const Report& report, const input::DeviceRecord& device, unsigned findings) {
    const std::string place = fmt::format("{}\n{}\n{}", report.process.host, device.ordinal, device.name);
    const std::string key =
        device.uuid.empty() ? place : fmt::format("{}\n{}", report.process.host, device.uuid);
    auto same = known_.find(key);
    if (same == known_.end()) {
      same = known_.find(place);
      if (same != known_.end() && !out_[same->second].uuid.empty()) same = known_.end();  // another one
    }
    if (same != known_.end()) {
      out_[same->second].findings = std::max(out_[same->second].findings, findings);
      return;
    }
    if (out_.size() == kMaxDevices) {
      ++left_out_;
      return;
    }
    known_.emplace(key, out_.size());
    // A report that knows no UUID speaks of the same GPU, where ordinal and name agree.
    known_.emplace(place, out_.size());
    const auto arch = image::parse_arch(device.compute_capability);
    const input::DriverRecord driver = report.driver.value_or(input::DriverRecord());
    out_.push_back({report.process.host, static_cast<unsigned>(device.ordinal),
                    device.name.substr(0, kMaxNameLength), arch ? std::optional(arch->cc) : std::nullopt,
                    device.uuid.substr(0, kMaxNameLength), device.pci.substr(0, kMaxNameLength),
                    driver.cuda_version.substr(0, kMaxNameLength),
                    driver.kernel_module.substr(0, kMaxNameLength), driver.simulated, findings});
  }

  std::vector<DeviceSummary>& out_;
  std::unordered_map<std::string, std::size_t> known_;
  std::uint64_t left_out_ = 0;
};

/// The verdict over all findings and processes. A failure outweighs an unwatched process.
Verdict verdict_of(const Analysis& analysis, bool idle) {
  const auto any = [&](Severity severity, bool image) {
    return std::ranges::any_of(analysis.findings, [&](const Finding& finding) {
      return finding.severity == severity && is_image_cause(finding.cause) == image;
    });
  };
  if (any(Severity::error, true)) return Verdict::gap;
  if (any(Severity::error, false)) return Verdict::failure;
  // A latent gap for a target is what was asked for; one for a present GPU, not hit, is information.
  if (any(Severity::warning, true)) return Verdict::gap;
  if (std::ranges::any_of(analysis.findings, [](const Finding& finding) {
        return finding.cause == Cause::unknown && finding.severity == Severity::warning;
      }))
    return Verdict::incomplete;  // what was asked could not be answered
  if (!analysis.blind.empty()) return Verdict::blind;
  if (analysis.processes.empty()) return Verdict::no_cuda;
  // What is not in a report may be the failure.
  const bool whole = std::ranges::all_of(analysis.processes, [](const ProcessSummary& process) {
    return process.complete && process.lost == 0;
  });
  if (!whole) return Verdict::incomplete;
  if (std::ranges::all_of(analysis.processes, &ProcessSummary::compiler)) return Verdict::no_cuda;
  if (analysis.failed()) return Verdict::failure;
  return idle ? Verdict::idle : Verdict::ok;
}

// Drops a latent gap if another process already failed because of it.
void drop_known_gaps(std::vector<Finding>& findings) {
  using Key = std::tuple<std::string, std::string, std::string>;
  const auto key_of = [](const Finding& finding) {
    return Key(finding.object, finding.build_id, finding.need);
  };
  std::set<Key> hit;
  for (const Finding& finding : findings)
    if (is_image_cause(finding.cause) && finding.severity == Severity::error && !finding.object.empty())
      hit.insert(key_of(finding));
  std::erase_if(findings, [&](const Finding& finding) {
    return finding.cause == Cause::latent_gap && hit.contains(key_of(finding));
  });
}

// Drops findings that another report answers: a file that one process could not read, and a program that gave
// up because a compiler failed.
void drop_answered_doubts(std::vector<Finding>& findings) {
  const bool compiler = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.cause == Cause::nvrtc_arch_unsupported && finding.severity == Severity::error;
  });
  std::erase_if(findings, [&](const Finding& finding) {
    return compiler && finding.cause == Cause::library_refuses && !finding.evidence.empty() &&
           finding.evidence.back().id == core::EvidenceId::ended_silently;
  });
  std::set<std::pair<std::string, std::string>> told;  // object and need
  for (const Finding& finding : findings) {
    const bool about_images = is_image_cause(finding.cause) || finding.cause == Cause::latent_gap;
    if (about_images && !finding.object.empty()) told.emplace(finding.object, finding.need);
  }
  std::erase_if(findings, [&](const Finding& finding) {
    return !finding.unread.empty() && finding.unread.size() < diagnose::kMaxUnread &&
           std::ranges::all_of(finding.unread, [&](const std::string& path) {
             return told.count({path, finding.need}) != 0;
           });
  });
}

/// Reads one report after the other and keeps what the analysis needs of it, so that memory does not grow
/// with their size.
class Reports : public Source {
 public:
  Reports(const AnalysisOptions& options, const RunFacts& run, Analysis& out, ObjectFiles& files)
      : Source(out.findings), options_(options), run_(run), out_(out), files_(files) {}

  /// What was found, and what could not be.
  void finish() {
    conclude(*this);
    notes_.take(out_.notes);
    left_out(table_.left_out(), "finding", "findings");
    left_out(processes_.left_out(), "process", "processes");
    left_out(devices_.left_out(), "GPU", "GPUs");
    left_out(blind_left_out_, "process that was not watched", "processes that were not watched");
    out_.verdict = verdict_of(out_, idle_.all());
    if (out_.verdict == Verdict::idle) out_.mapped = idle_.mapped();
  }

 protected:
  void read(const std::vector<ReportFile>& files) {
    for (const ReportFile& file : files) total_ += file.bytes;
    for (const ReportFile& file : files) {
      take(file, false);
      done_ += file.bytes;
      if (options_.progress) options_.progress(done_, total_);
    }
    // A child's "not initialized" may be explained by its parent: judge these children after all parents were
    // read.
    for (const Report& report : waiting_) look_at(report);
    waiting_.clear();
    for (const ReportFile& file : unread_) take(file, true);
  }

  void look_at(const Report& report) {
    const input::ReportIndex index(report);
    files_.learn(report);
    const bool watched = !is_without_shim(report);
    if (auto blind = blind_by_bypass(report); blind && (watched || !is_known_blind(blind->pid))) {
      if (out_.blind.size() < kMaxBlind)
        out_.blind.push_back(std::move(*blind));
      else
        ++blind_left_out_;
    }
    const auto parent = initialized_.find(key_of(report, report.process.ppid));
    const bool child = parent != initialized_.end() && parent->second == program_of(report);
    const diagnose::Scene scene{report, index, files_, options_, run_, advised_, file_gaps_, child};
    std::vector<Finding> findings;
    if (watched) findings = findings_of(scene);
    if (report.foreign)
      mark_foreign(report, findings);
    else
      note_owners(report, findings);
    if (options_.judged) options_.judged(scene);
    if (!files_.left_out().empty()) notes_.add(report.path, "a file that it names " + files_.left_out());
    listed_.add(report, findings);
    const auto process = processes_.add(report, loads_of(report));
    compilers_.note(report, process);
    devices_.add(report, findings);
    idle_.add(report);
    lineage_.add(report);
    words_.learn(report);
    witness_.learn(report);
    note_ending(ending_of(report, run_));
    for (Finding& finding : findings) table_.add(std::move(finding), process);
  }

  void judge_idle() {
    if (run_.ending.status.value_or(0) == 0) return;
    for (const diagnose::IdleProcess& process : run_.idle)
      if (auto finding = idle_driver(process, run_.first_simulated(), files_))
        table_.add(std::move(*finding), {});
  }

  /// What the driver refused where no shim saw it.
  void judge_driver_log() {
    for (const auto& [report, lines] : witness_.unseen(files_)) {
      const auto& deciding = lines;  // clang before 16 captures no binding
      const input::ReportIndex index(report);
      const diagnose::Scene scene{report, index, files_, options_, run_, advised_, file_gaps_, false};
      for (Finding& finding : findings_of(scene)) {
        if (!is_image_cause(finding.cause) || finding.cause == Cause::latent_gap) continue;
        const bool ended_it = std::ranges::any_of(
            finding.failures, [&](const core::ReportLine& at) { return deciding.contains(at.line); });
        if (!ended_it || !ending_of(report, run_).failed()) finding.severity = Severity::info;
        finding.evidence.push_back(witness_.unseen_refusals(report, finding.count));
        table_.add(std::move(finding), {});
      }
    }
  }

  void judge_missing() {
    for (const diagnose::MissingLibrary& missing : run_.missing)
      if (missing.of_cuda)
        table_.add(missing_library(missing), std::nullopt);
      else
        notes_.add(missing.needed_by, fmt::format("the dynamic linker finds no {}", missing.name));
    if (!run_.driverless.empty()) table_.add(diagnose::no_driver(run_.driverless), std::nullopt);
  }

  void join() final {
    compilers_.judge(table_);
    std::erase_if(table_.rows(), [&](const FindingTable::Row& row) { return is_of_helpers(row); });
    for (FindingTable::Row& row : table_.rows()) {
      processes_.describe(row, row.finding);
      findings().push_back(std::move(row.finding));
    }
    processes_.summarize_runs();
    drop_known_gaps(findings());
    drop_answered_doubts(findings());
    words_.judge(idle_.used(), files_, findings());
    out_.needs_module = words_.needs_module();
    if (std::ranges::none_of(findings(),
                             [](const Finding& finding) { return finding.severity >= Severity::warning; }))
      out_.other = words_.other_failure();
  }
  void sort() final { diagnose::sort_findings(findings()); }
  void plan() final { out_.fleet = fleet_plans(out_, options_, listed_, files_); }
  const advise::ForeignNames& foreign() const final { return foreign_; }

  ObjectFiles& files() { return files_; }

 private:
  /// A library that has nothing for the GPU, in processes that used no kernel and were started by ones that
  /// did (Inductor's compile workers): they had no work for it.
  bool is_of_helpers(const FindingTable::Row& row) const {
    const Finding& finding = row.finding;
    return finding.cause == Cause::library_refuses && finding.severity < Severity::error &&
           finding.failed_call.empty() && !row.seen.empty() && row.processes == row.seen.size() &&
           std::ranges::all_of(row.seen, [&](const Sighting& seen) {
             return lineage_.is_helper(out_.processes[seen.process].pid);
           });
  }

  bool is_known_blind(long pid) const {
    return std::ranges::any_of(out_.blind, [&](const diagnose::BlindProcess& row) { return row.pid == pid; });
  }

  void note_ending(const diagnose::Ending& ending) {
    if (out_.failed() || !ending.known()) return;
    out_.exit_status = ending.status;
    out_.term_signal = ending.signal;
  }

  void mark_foreign(const Report& report, std::vector<Finding>& findings) {
    bool any = false;
    for (Finding& finding : findings) {
      if (!finding.about) continue;
      diagnose::Facts at = *finding.about;
      at.process.foreign = any = true;
      finding.about = std::make_shared<const diagnose::Facts>(std::move(at));
    }
    if (any) foreign_.add(report);
  }

  /// What the commands run, where it is another user's.
  void note_owners(const Report& report, const std::vector<Finding>& findings) {
    std::set<std::string> paths{report.process.exe};
    for (const Finding& finding : findings) {
      if (!finding.about) continue;
      paths.insert(finding.about->process.python_env.interpreter);
      paths.insert(finding.about->file.build_folder);
    }
    for (const std::string& path : paths) {
      struct stat status {};
      if (!path.empty() && ::lstat(path.c_str(), &status) == 0 &&
          report::is_another_user(status.st_uid, ::geteuid()))
        notes_.add(report.path,
                   fmt::format("{} belongs to another user, and a command below may run it", path));
    }
  }

  // Children whose parent is still to come are kept up to here, and else read again.
  static constexpr std::size_t kMaxWaiting = std::size_t{64} << 20;
  static constexpr std::size_t kMaxBlind = 1024;

  void take(const ReportFile& file, bool again) {
    const auto told = [&](std::uint64_t bytes) {
      if (options_.progress && !again && bytes < file.bytes) options_.progress(done_ + bytes, total_);
    };
    auto got = read_report(file.path, told,
                           options_.keep_private ? input::HomePaths::hidden : input::HomePaths::own);
    if (const auto* why = std::get_if<std::string>(&got)) return notes_.add(file.path, *why);
    Report& report = std::get<Report>(got);
    if (options_.trust_reports) report.foreign = false;
    if (!again) {
      if (report.foreign)
        notes_.add(report.path,
                   "belongs to another user: kshim shows its findings but uses none of its paths or names in "
                   "commands "
                   "(--trust-reports lifts that)");
      for (const input::ReportNote& note : report.notes) notes_.add(place_of(report, note), note.text);
      if (report.driver && !report.devices.empty())
        initialized_.insert_or_assign(key_of(report, report.process.pid), program_of(report));
      if (not_initialized(report) && initialized_.count(key_of(report, report.process.ppid)) == 0) {
        if (kept_ + report.kept > kMaxWaiting) return unread_.push_back(file);
        kept_ += report.kept;
        return waiting_.push_back(std::move(report));
      }
    }
    look_at(report);
  }

  static bool not_initialized(const Report& report) {
    return std::ranges::any_of(report.failures, [](const input::FailureRecord& failure) {
      return std::ranges::any_of(
          failure.layers, [](const input::Layer& layer) { return layer.code == core::kNotInitialized; });
    });
  }

  // Process ids are told apart by host and run.
  static std::uint64_t key_of(const Report& report, std::uint64_t pid) {
    const auto text = fmt::format("{}\n{}\n{}", report.process.run, report.process.host, pid);
    return content_hash(bytes_of(std::string_view(text)));
  }
  static std::uint64_t program_of(const Report& report) {
    const std::string text = report.process.exe + '\n' + core::join(report.process.argv, "\n");
    return content_hash(bytes_of(std::string_view(text)));
  }

  // The shim records a limited number of loads and counts the rest. It records every failed load, so the rest
  // succeeded.
  static std::uint64_t loads_of(const Report& report) {
    const auto good =
        static_cast<std::uint64_t>(std::ranges::count(report.modules, 0, &input::ModuleRecord::result));
    if (good != report.modules.size() || !report.end) return good;
    return std::max(good, report.end->modules);
  }

  void left_out(std::uint64_t count, std::string_view one, std::string_view several) {
    if (count != 0)
      out_.notes.push_back(
          fmt::format("{} {} {} left out: there are too many; `--format jsonl` takes any number",
                      grouped_number(count), count == 1 ? one : several, count == 1 ? "was" : "were"));
  }

  const AnalysisOptions& options_;
  const RunFacts& run_;
  Analysis& out_;
  ObjectFiles& files_;
  FindingTable table_;
  diagnose::Advised advised_;
  advise::ForeignNames foreign_;
  diagnose::FileGaps file_gaps_;
  Processes processes_{out_};
  DeviceTable devices_{out_.devices};
  IdleProcesses idle_{options_};
  Lineage lineage_{options_};
  ProgramWords words_{run_};
  DriverWitness witness_{run_};
  NoteList notes_;
  CompilerFailures compilers_{options_, run_, files_, notes_};
  ListedImages listed_;
  /// Process key -> program hash. A child with another program called exec, so it initializes its own driver.
  std::unordered_map<std::uint64_t, std::uint64_t> initialized_;
  std::vector<Report> waiting_;
  std::vector<ReportFile> unread_;
  std::size_t kept_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t blind_left_out_ = 0;
};

/// All reports of some folders.
class Folders final : public Reports {
 public:
  Folders(const std::vector<ReportFile>& reports, const AnalysisOptions& options, const RunFacts& run,
          Analysis& out, ObjectFiles& files)
      : Reports(options, run, out, files), reports_(reports) {}

 private:
  void judge() override {
    read(reports_);
    files().charge({});
    judge_idle();
    judge_driver_log();
    judge_missing();
  }

  const std::vector<ReportFile>& reports_;
};

/// A report that was read.
class OneReport final : public Reports {
 public:
  OneReport(const Report& report, const AnalysisOptions& options, const RunFacts& run, Analysis& out,
            ObjectFiles& files, AdviceCache& given)
      : Reports(options, run, out, files), report_(report), given_(given) {}

 private:
  void judge() override {
    look_at(report_);
    judge_driver_log();
  }
  AdviceCache* given() const override { return &given_; }

  const Report& report_;
  AdviceCache& given_;
};

void note_assumptions(const AnalysisOptions& options, std::vector<std::string>& notes) {
  if (options.assume_cc)
    notes.push_back(
        fmt::format("judged as if the GPU were of compute capability {}", name(*options.assume_cc)));
  if (options.assume_driver) {
    notes.push_back(
        fmt::format("judged as if the driver were one for CUDA {}", name(*options.assume_driver)));
    if (std::string said = data::newer_cuda_than_known(*options.assume_driver); !said.empty())
      notes.push_back(std::move(said));
  }
  if (options.assume_toolkit)
    notes.push_back(
        fmt::format("judged as if everything were built with CUDA {}", name(*options.assume_toolkit)));
}

}  // namespace

Analysis analyze(const std::vector<std::filesystem::path>& reports_or_folders, const AnalysisOptions& options,
                 const RunFacts& run) {
  Analysis out;
  out.blind = run.blind;
  out.notes = run.notes;
  out.exit_status = run.ending.status;
  out.term_signal = run.ending.signal;
  out.heard = run.heard;
  out.again = run.again;
  out.no_kernel_module = run.no_kernel_module;
  if (const std::string site = run.no_kernel_module ? owner::environment_of_program(run.started).site : "";
      !site.empty())
    out.has_jax = std::filesystem::exists(std::filesystem::path(site) / "jax");
  if (out.failed()) out.last_words = last_words(core::redacted(run.words, report::Content::text));
  note_assumptions(options, out.notes);
  const std::vector<ReportFile> reports = find_report_files(reports_or_folders, out.notes);
  ObjectFiles files(options.root, options.patience);
  Folders(reports, options, run, out, files).finish();
  out.nothing_readable = out.processes.empty();
  return out;
}

struct EachReport::Known {
  explicit Known(const AnalysisOptions& options) : files(options.root, options.patience) {}
  ObjectFiles files;
  AdviceCache given;
};

EachReport::EachReport(const AnalysisOptions& options) : options_(options) {}
EachReport::~EachReport() = default;

ObjectFiles& EachReport::files() {
  if (known_ == nullptr) known_ = std::make_unique<Known>(options_);
  return known_->files;
}

Analysis EachReport::judge(const Report& report, AnalysisOptions::Duration duration) {
  // So that memory does not grow with the number of reports.
  constexpr std::size_t kMaxReports = 16384;
  if (reports_++ % kMaxReports == 0) known_ = std::make_unique<Known>(options_);
  known_->files.forget();
  options_.duration = std::move(duration);
  Analysis out;
  OneReport(report, options_, run_, out, known_->files, known_->given).finish();
  return out;
}

std::string_view to_name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"ok", "gap", "failure", "no-cuda", "blind", "idle", "incomplete"};
  return kNames[static_cast<std::size_t>(verdict)];
}

Severity worst(const Analysis& analysis) {
  const auto most = std::ranges::max_element(analysis.findings, {}, &Finding::severity);
  return most == analysis.findings.end() ? Severity::none : most->severity;
}

}  // namespace kshim::verbs

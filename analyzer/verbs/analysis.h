// SPDX-License-Identifier: Apache-2.0
// From reports to findings and fixes: what `kshim analyze` and `kshim run` call.
#pragma once

#include "analyzer/advise/fleet.h"
#include "analyzer/diagnose/options.h"
#include "analyzer/verbs/other_failure.h"

namespace kshim::input {
class ObjectFiles;
struct Report;
}  // namespace kshim::input

namespace kshim::verbs {

enum class Verdict : std::uint8_t { ok, gap, failure, no_cuda, blind, idle, incomplete };
std::string_view to_name(Verdict verdict);

struct ReportFacts;

/// What a program said last on stderr.
struct LastWords {
  std::string line;        ///< the exception, else the last line
  bool exception = false;  ///< an exception, a panic or a failed assertion that ended it
  bool about_gpu = false;  ///< a word of CUDA's or of GPUs is in it
};

struct DeviceSummary {
  std::string host;
  unsigned ordinal = 0;
  std::string name;
  std::optional<image::ComputeCapability> cc;
  std::string uuid;
  std::string pci;
  std::string driver_cuda;    ///< "13.0"
  std::string kernel_module;  ///< "580.82.07"
  bool simulated = false;
  unsigned findings = 0;  ///< of severity error that name it
};

struct ProcessSummary {
  std::string report;  ///< path of the report
  std::string run;     ///< that it belongs to; empty where nothing says so
  std::string host;
  long pid = 0;
  std::optional<std::uint64_t> rank;
  std::string exe;
  std::vector<std::string> argv;
  unsigned failures = 0;
  unsigned modules = 0;
  bool complete = false;     ///< has an `end` record
  std::uint64_t lost = 0;    ///< records that its shim could not write, or that cannot be read any more
  bool damaged = false;      ///< some of them were written
  std::uint64_t sample = 1;  ///< how many processes it stands for
  bool compiler = false;     ///< one that failed, and initialized no driver
  diagnose::Ending ending;   ///< as its report says
};

/// The processes of one run; those that name none together.
struct RunSummary {
  std::string run;
  std::uint64_t processes = 0;
  std::uint64_t hosts = 0;
  std::uint64_t ranks = 0;       ///< distinct
  std::uint64_t failed = 0;      ///< processes with a failure
  std::uint64_t incomplete = 0;  ///< without an `end` record
};

/// A report that could not be read.
struct RejectedReport {
  std::string report;       ///< its path
  std::string reason;       ///< a clause
  std::uint64_t owner = 0;  ///< of the file: its user id
};

struct Analysis {
  Verdict verdict = Verdict::no_cuda;
  std::vector<DeviceSummary> devices;
  std::vector<ProcessSummary> processes;
  std::vector<RunSummary> runs;
  std::vector<core::Finding> findings;   ///< most severe and most certain first
  std::vector<advise::FleetPlan> fleet;  ///< of files that lack code for one of several GPUs
  std::vector<std::string> notes;        ///< torn lines, unreadable files, what was assumed
  std::vector<diagnose::BlindProcess> blind;
  std::vector<std::string> mapped;  ///< Verdict::idle: names of the CUDA libraries that were loaded, sorted
  std::optional<int> exit_status;   ///< of the program; of several, the first that failed
  std::optional<int> term_signal;
  bool heard = false;                ///< what the program wrote to stderr was read, too
  LastWords last_words;              ///< of a program that failed
  std::optional<OtherAnswer> other;  ///< what ended the program, where that is no failure of CUDA's
  std::string again;                 ///< RunFacts::again
  bool no_kernel_module = false;
  bool has_jax = false;      ///< its environment has JAX
  std::string needs_module;  ///< what asked for that kernel module: "CUPTI", "/dev/nvidia0"; empty: unknown
  bool failed() const { return term_signal || exit_status.value_or(0) != 0; }
  bool nothing_readable = false;
  std::optional<RejectedReport> rejected;    ///< of an analysis of one report
  std::shared_ptr<const ReportFacts> facts;  ///< of such, for tables
};

/// Reads reports and folders of them. What cannot be read becomes a note.
Analysis analyze(const std::vector<std::filesystem::path>& reports_or_folders,
                 const diagnose::AnalysisOptions& options, const diagnose::RunFacts& run = {});

/// Judges reports that were read, each by itself: what is said of one does not depend on the others. Files,
/// packages and advice that they share are looked up once. For one thread.
class EachReport {
 public:
  explicit EachReport(const diagnose::AnalysisOptions& options);
  ~EachReport();
  EachReport(const EachReport&) = delete;
  EachReport& operator=(const EachReport&) = delete;
  /// `duration`: AnalysisOptions::duration, for this report.
  Analysis judge(const input::Report& report, diagnose::AnalysisOptions::Duration duration = {});
  /// Of the reports judged lately.
  input::ObjectFiles& files();

 private:
  struct Known;
  diagnose::AnalysisOptions options_;
  diagnose::RunFacts run_;  ///< nothing
  std::unique_ptr<Known> known_;
  std::size_t reports_ = 0;
};

/// Severity::none where there is no finding.
core::Severity worst(const Analysis& analysis);

}  // namespace kshim::verbs

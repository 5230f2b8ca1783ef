// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyzer/analysis/aftermath.h"
#include "analyzer/analysis/analysis.h"
#include "analyzer/analysis/bypass.h"
#include "analyzer/analysis/merge.h"
#include "analyzer/analysis/record_packages.h"
#include "analyzer/analysis/report_files.h"
#include "analyzer/analysis/report_findings.h"
#include "analyzer/analysis/verdict.h"
#include "analyzer/reader/report_reader.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kMostNotes = 50;

/// Reads one report after the other and keeps what the analysis needs of it, so that memory does not grow
/// with them.
class Run {
 public:
  Run(const Options& options, Analysis& out) : options_(options), out_(out), files_(options.root) {}

  void read(const std::vector<ReportFile>& files) {
    std::uint64_t total = 0;
    std::uint64_t done = 0;
    for (const ReportFile& file : files) total += file.bytes;
    std::vector<ReportFile> children;
    for (const ReportFile& file : files) {
      take(file, &children);
      done += file.bytes;
      if (options_.progress) options_.progress(done, total);
    }
    // "Not initialised" in a child is explained by its parent, whose report may come later.
    for (const ReportFile& file : children) take(file, nullptr);
  }

  void judge_idle() {
    for (const IdleProcess& process : options_.idle) {
      if (auto finding = idle_driver(process, options_, files_))
        merge_into(out_.findings, std::move(*finding));
    }
  }

  void judge_missing() {
    for (const MissingLibrary& missing : options_.missing) {
      if (missing.of_cuda) {
        merge_into(out_.findings, missing_library(missing));
      } else {
        note(fmt::format("{}: the dynamic linker finds no {}", missing.needed_by, missing.name));
      }
    }
  }

 private:
  using ProcessKey = std::pair<std::string, std::uint64_t>;

  void take(const ReportFile& file, std::vector<ReportFile>* children) {
    const auto got = read_report(file.path);
    if (const auto* why = std::get_if<std::string>(&got)) {
      note(fmt::format("{}: {}", file.path.string(), *why));
      return;
    }
    const Report& report = std::get<Report>(got);
    if (children != nullptr) {
      if (report.driver && !report.devices.empty())
        initialised_.insert_or_assign(ProcessKey{report.process.host, report.process.pid},
                                      std::pair(report.process.exe, report.process.argv));
      if (not_initialised(report)) {
        children->push_back(file);
        return;
      }
    }
    for (const std::string& text : report.notes) note(text);
    judge(report);
  }

  static bool not_initialised(const Report& report) {
    constexpr int kNotInitialised = 3;
    return std::any_of(report.failures.begin(), report.failures.end(), [](const FailureRecord& failure) {
      return std::any_of(failure.layers.begin(), failure.layers.end(),
                         [](const Layer& layer) { return layer.code == kNotInitialised; });
    });
  }

  void judge(const Report& report) {
    const ReportIndex index(report);
    files_.learn(report);
    if (auto blind = blind_by_bypass(report)) out_.blind.push_back(std::move(*blind));
    const auto parent = initialised_.find({report.process.host, report.process.ppid});
    const bool child =
        parent != initialised_.end() && parent->second == std::pair(report.process.exe, report.process.argv);
    const Scene scene{report, index, files_, options_, child};
    std::vector<Finding> findings = findings_of(scene);
    if (options_.record_packages) record_packages(scene);
    summarise(report, findings);
    for (Finding& finding : findings) merge_into(out_.findings, std::move(finding));
  }

  // The shim writes so many loads out and counts the rest; where none of those written failed, none did.
  static std::uint64_t loads_of(const Report& report) {
    const auto good = static_cast<std::uint64_t>(
        std::count_if(report.modules.begin(), report.modules.end(),
                      [](const ModuleRecord& module) { return module.result == 0; }));
    if (good != report.modules.size() || !report.end) return good;
    return std::max(good, report.end->modules);
  }

  void summarise(const Report& report, const std::vector<Finding>& findings) {
    ProcessSummary process;
    process.report = report.path;
    process.host = report.process.host;
    process.pid = static_cast<long>(report.process.pid);
    process.rank = report.process.rank;
    process.exe = report.process.exe;
    process.argv = report.process.argv;
    process.failures = static_cast<unsigned>(report.failures.size());
    process.modules = static_cast<unsigned>(loads_of(report));
    process.complete = report.end.has_value();
    out_.processes.push_back(std::move(process));
    for (const DeviceRecord& device : report.devices) add_device(report, device, findings);
  }

  // The same GPU seen by several processes is one GPU: by UUID, else by host, ordinal and name.
  void add_device(const Report& report, const DeviceRecord& device, const std::vector<Finding>& findings) {
    const std::string text = fmt::format("GPU {}: ", device.ordinal);
    const auto named =
        static_cast<unsigned>(std::count_if(findings.begin(), findings.end(), [&](const Finding& finding) {
          return finding.severity == Severity::error &&
                 std::any_of(finding.devices.begin(), finding.devices.end(),
                             [&](const std::string& name) { return name.starts_with(text); });
        }));
    const auto same = std::find_if(out_.devices.begin(), out_.devices.end(), [&](const DeviceSummary& known) {
      if (known.host != report.process.host) return false;
      if (!known.uuid.empty() && !device.uuid.empty()) return known.uuid == device.uuid;
      return known.ordinal == device.ordinal && known.name == device.name;
    });
    if (same != out_.devices.end()) {
      same->findings = std::max(same->findings, named);
      return;
    }
    DeviceSummary summary;
    summary.host = report.process.host;
    summary.ordinal = device.ordinal;
    summary.name = device.name;
    if (const auto arch = image::parse_arch(device.compute_capability)) summary.cc = arch->cc;
    summary.uuid = device.uuid;
    summary.pci = device.pci;
    if (report.driver) {
      summary.driver_cuda = report.driver->cuda_version;
      summary.kernel_module = report.driver->kernel_module;
      summary.simulated = report.driver->simulated;
    }
    summary.findings = named;
    out_.devices.push_back(std::move(summary));
  }

  void note(std::string text) {
    if (out_.notes.size() < kMostNotes)
      out_.notes.push_back(std::move(text));
    else if (out_.notes.size() == kMostNotes)
      out_.notes.emplace_back("more notes were left out");
  }

  const Options& options_;
  Analysis& out_;
  ObjectFiles files_;
  /// What they ran: a child that runs something else has come through an exec, and has a driver of its own.
  std::map<ProcessKey, std::pair<std::string, std::vector<std::string>>> initialised_;
};

void note_assumptions(const Options& options, std::vector<std::string>& notes) {
  if (options.assume_cc) {
    notes.push_back(fmt::format("judged as if the GPU were of compute capability {}",
                                image::to_name(*options.assume_cc).view()));
  }
  if (options.assume_driver) {
    notes.push_back(fmt::format("judged as if the driver were one for CUDA {}",
                                image::to_name(*options.assume_driver).view()));
  }
  if (options.assume_toolkit) {
    notes.push_back(fmt::format("judged as if everything were built with CUDA {}",
                                image::to_name(*options.assume_toolkit).view()));
  }
}

}  // namespace

Analysis analyze(const std::vector<std::filesystem::path>& reports_or_folders, const Options& options) {
  Analysis out;
  out.blind = options.blind;
  out.notes = options.notes;
  out.exit_status = options.exit_status;
  out.term_signal = options.term_signal;
  note_assumptions(options, out.notes);
  const std::vector<ReportFile> files = find_report_files(reports_or_folders, out.notes);
  Run run(options, out);
  run.read(files);
  run.judge_idle();
  run.judge_missing();
  sort_findings(out.findings);
  out.nothing_readable = out.processes.empty();
  out.verdict = verdict_of(out);
  return out;
}

}  // namespace kshim::analysis

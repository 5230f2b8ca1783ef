// SPDX-License-Identifier: Apache-2.0
#include "analyzer/export/open_metrics.h"

#include <fmt/format.h>

#include "analyzer/data/knowledge_file.h"
#include "analyzer/input/report/report_reader.h"
#include "analyzer/verbs/analysis.h"
#include "analyzer/verbs/report_files.h"
#include "kshim/image/compute_capability.h"

namespace kshim::exports {
namespace {

// Reports may be a stranger's: what no table of ours names makes no series of its own.
constexpr const char* kOther = "other";

}  // namespace

std::string open_metrics(const std::vector<std::filesystem::path>& paths, std::vector<std::string>& notes) {
  AnalysisOptions options;
  options.keep_private = true;
  EachReport judge(options);
  std::map<std::string_view, std::uint64_t> verdicts;
  for (int verdict = 0; verdict <= static_cast<int>(Verdict::incomplete); ++verdict)
    verdicts[to_name(static_cast<Verdict>(verdict))] = 0;
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Key, std::uint64_t> findings;
  std::uint64_t rejected = 0;
  for (const ReportFile& file : find_report_files(paths, notes)) {
    const auto got = read_report(file.path, {}, HomePaths::hidden);
    const auto* report = std::get_if<Report>(&got);
    if (report == nullptr || report->linked) {
      ++rejected;
      continue;
    }
    const Analysis analysis = judge.judge(*report);
    const std::uint64_t weight = report->failures.empty() ? report->process.sample.value_or(1) : 1;
    verdicts[to_name(analysis.verdict)] += weight;
    std::set<Key> seen;
    for (const Finding& finding : analysis.findings) {
      std::string capability;
      if (!finding.devices.empty() && finding.devices.front().cc)
        capability = find_gpu(*finding.devices.front().cc) == nullptr
                         ? kOther
                         : image::to_name(*finding.devices.front().cc).view();
      const std::string_view project = known_project(finding.package.name);
      seen.emplace(row_of(finding.cause).name, to_name(finding.severity),
                   !project.empty() || finding.package.name.empty() ? project : kOther, capability);
    }
    for (const Key& key : seen) findings[key] += weight;
  }
  std::string out =
      "# HELP kshim_processes Processes in the reports that were read, by verdict.\n"
      "# TYPE kshim_processes gauge\n";
  for (const auto& [verdict, count] : verdicts)
    out += fmt::format("kshim_processes{{verdict=\"{}\"}} {}\n", verdict, count);
  out +=
      "# HELP kshim_findings Processes that have a finding, by cause, severity, package and compute "
      "capability of the GPU.\n"
      "# TYPE kshim_findings gauge\n";
  for (const auto& [key, count] : findings) {
    const auto& [cause, severity, package, capability] = key;
    out += fmt::format("kshim_findings{{cause=\"{}\",severity=\"{}\",package=\"{}\",capability=\"{}\"}} {}\n",
                       cause, severity, package, capability, count);
  }
  out += fmt::format(
      "# HELP kshim_reports_rejected Reports that could not be read.\n"
      "# TYPE kshim_reports_rejected gauge\n"
      "kshim_reports_rejected {}\n"
      "# EOF\n",
      rejected);
  return out;
}

}  // namespace kshim::exports

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/render/share_analysis.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"
#include "analyzer/render/fleet_text.h"
#include "analyzer/render/share_finding.h"
#include "analyzer/render/share_matrix.h"
#include "analyzer/say/verdict_line.h"
#include "kshim/version.h"

namespace kshim::analysis {
namespace {

using Rows = std::vector<std::vector<Line>>;

void share_headline(const Analysis& analysis, SharePage& page) {
  const std::string counted = counted_findings(analysis.findings);
  const VerdictLine verdict = verdict_line(analysis);
  if (!verdict.head.empty()) {
    page.heading(1, {{fmt::format("kshim: {}", to_name(analysis.verdict))}});
    page.paragraph({strong(verdict.head), {" " + verdict.text}});
    if (!counted.empty()) page.paragraph({{fmt::format("Also {}.", counted)}});
  } else {
    page.heading(1, {{fmt::format("kshim: {}", counted.empty() ? to_name(analysis.verdict) : counted)}});
  }
  if (analysis.verdict == Verdict::ok) return;  // its sentence has the ending
  if (analysis.term_signal)
    page.paragraph({{fmt::format("The program was ended by signal {}.", *analysis.term_signal)}});
  else if (analysis.exit_status.value_or(0) != 0)
    page.paragraph({{fmt::format("The program exited with status {}.", *analysis.exit_status)}});
}

void more(Rows& rows, std::size_t all, std::size_t most) {
  if (all > most) rows.push_back({{{fmt::format("and {} more", all - most)}}});
}

void share_devices(const Analysis& analysis, SharePage& page) {
  Rows rows;
  const std::size_t most = std::min(analysis.devices.size(), page.limits().rows);
  for (std::size_t i = 0; i < most; ++i) {
    const DeviceSummary& device = analysis.devices[i];
    const std::string cc = device.cc ? std::string(image::to_name(*device.cc).view()) : "?";
    rows.push_back({{{std::to_string(device.ordinal), Style::number}},
                    {{device.name}},
                    {{cc}},
                    {{device.driver_cuda}},
                    {{device.kernel_module}},
                    {code(device.uuid)},
                    {code(device.host)}});
  }
  more(rows, analysis.devices.size(), most);
  page.table({"GPU", "Name", "Compute capability", "Driver serves CUDA", "Driver", "UUID", "Host"}, rows);
}

void share_processes(const Analysis& analysis, SharePage& page) {
  Rows rows;
  const std::size_t most = std::min(analysis.processes.size(), page.limits().rows);
  for (std::size_t i = 0; i < most; ++i) {
    const ProcessSummary& process = analysis.processes[i];
    const std::string command = process.argv.empty() ? process.exe : join(process.argv, " ");
    rows.push_back({{{std::to_string(process.pid), Style::number}},
                    {{process.rank ? std::to_string(*process.rank) : ""}},
                    {code(command)},
                    {{std::to_string(process.modules), Style::number}},
                    {{std::to_string(process.failures), Style::number}},
                    {code(process.report)},
                    {{process.complete ? "" : "no end"}}});
  }
  more(rows, analysis.processes.size(), most);
  page.table({"Process", "Rank", "Command", "Modules", "Failures", "Report", ""}, rows);
}

void share_fleet(const Analysis& analysis, SharePage& page) {
  constexpr std::size_t kPlans = 20;
  const std::vector<const FleetPlan*> plans = fleet_news(analysis.fleet);
  if (plans.empty()) return;
  page.heading(2, {{"What to build for"}});
  page.paragraph({{fmt::format("So that it runs on {}.", names_of(plans.front()->gpus))}});
  const std::size_t shown = std::min({plans.size(), page.limits().rows, kPlans});
  for (std::size_t i = 0; i < shown; ++i) {
    Rows rows;
    for (auto& [label, text] : plan_rows(*plans[i])) {
      const Style style = label == "file" ? Style::code : Style::plain;
      if (!label.empty()) label.front() = static_cast<char>(label.front() - 'a' + 'A');
      rows.push_back({{{label}}, {{std::move(text), style}}});
    }
    page.table({}, rows);
  }
  if (plans.size() > shown)
    page.paragraph({{fmt::format("And {}: ", counted(plans.size() - shown, "more file"))},
                    code("--format json"),
                    {" has them all."}});
}

}  // namespace

void share_analysis(const Analysis& analysis, SharePage& page) {
  share_headline(analysis, page);
  share_contents(analysis.findings, page);
  share_matrix(analysis.findings, page.has_links(), page);
  share_findings(analysis.findings, page);
  share_fleet(analysis, page);
  if (!analysis.devices.empty() || !analysis.processes.empty()) {
    page.heading(2, {{"Environment"}});
    share_devices(analysis, page);
    share_processes(analysis, page);
  }
  std::vector<std::string> notes;
  for (const BlindProcess& process : analysis.blind)
    notes.push_back(fmt::format("{} (pid {}) was not watched: {}", process.exe, process.pid, process.reason));
  notes.insert(notes.end(), analysis.notes.begin(), analysis.notes.end());
  if (!notes.empty()) {
    page.heading(2, {{"Notes"}});
    share_list(notes, false, page);
  }
  share_footer(page);
}

void share_footer(SharePage& page) {
  constexpr std::string_view kHash = KSHIM_GIT_HASH;
  page.paragraph({{fmt::format("kshim {}{}{}{}", KSHIM_VERSION, kHash.empty() ? "" : " (", kHash,
                               kHash.empty() ? "" : ")"),
                   Style::dim}});
}

}  // namespace kshim::analysis

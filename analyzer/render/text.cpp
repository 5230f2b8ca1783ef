// SPDX-License-Identifier: Apache-2.0
// The analysis as text: one screen, the most important line first. People paste it into issues.
#include "analyzer/core/text.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/diagnose/merge.h"
#include "analyzer/render/clean.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/fleet_text.h"
#include "analyzer/render/page.h"
#include "analyzer/render/render.h"
#include "analyzer/say/verdict_line.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kScreen = 40;  // lines

std::size_t count(const Analysis& analysis, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(analysis.findings.begin(), analysis.findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

void print_verdict(const Analysis& analysis, Page& page) {
  const VerdictLine line = verdict_line(analysis);
  if (!line.head.empty()) page.titled(line.tone, line.head, line.text);
}

void print_summary(const Analysis& analysis, Page& page) {
  std::vector<std::string> parts;
  for (const auto& [severity, noun] :
       {std::pair{Severity::error, "error"}, std::pair{Severity::warning, "warning"}}) {
    if (const std::size_t n = count(analysis, severity); n != 0) parts.push_back(counted(n, noun));
  }
  std::string text = enumerate(parts);
  if (analysis.processes.size() > 1) text += fmt::format(" in {} processes", analysis.processes.size());
  page.line(page.paint(Tone::strong, text));
  for (std::size_t i = 0; i < analysis.findings.size(); ++i) {
    const Finding& finding = analysis.findings[i];
    if (finding.severity == Severity::info) continue;
    page.paragraph(fmt::format("{}. {}", i + 1, title_of(finding)), 2, 3);
  }
}

void print_blind(const Analysis& analysis, Page& page) {
  if (analysis.blind.empty()) return;
  page.blank();
  for (const BlindProcess& process : analysis.blind) {
    page.titled(Tone::warning,
                "not watched:", fmt::format("{} (pid {}): {}", process.exe, process.pid, process.reason));
  }
}

void print_ending(const Analysis& analysis, Page& page) {
  if (!analysis.findings.empty() || analysis.verdict == Verdict::ok) return;
  if (analysis.term_signal) {
    page.blank();
    page.titled(Tone::strong,
                "note:", fmt::format("the program was ended by signal {}", *analysis.term_signal));
  } else if (analysis.exit_status.value_or(0) != 0) {
    page.blank();
    page.titled(Tone::strong,
                "note:", fmt::format("the program exited with status {}", *analysis.exit_status));
  }
}

// What to name on a command line to read the same reports again.
std::string reports_path(const Analysis& analysis) {
  const auto typed = [](const std::string& path, const char* otherwise) {
    const std::string word = shell_quote(path);
    return word.front() == kNoShellWord ? std::string(otherwise) : word;
  };
  if (analysis.processes.size() == 1) return typed(analysis.processes.front().report, "REPORT");
  std::string folder;
  for (const ProcessSummary& process : analysis.processes) {
    const std::string own = process.report.substr(0, process.report.rfind('/') + 1);
    if (!folder.empty() && folder != own) return "REPORTS";
    folder = own;
  }
  return folder.empty() ? "." : typed(folder, "REPORTS");
}

// A library that tries what it has before it settles on something is no news either.
bool is_by_design(const Finding& finding) {
  return finding.cause == Cause::benign_probe || finding.is_by_design;
}

class Findings {
 public:
  Findings(const Analysis& analysis, bool verbose, Page& page)
      : analysis_(analysis), verbose_(verbose), page_(page) {}

  void print() {
    const std::size_t problems = count(analysis_, Severity::error) + count(analysis_, Severity::warning);
    if (problems > 1) print_summary(analysis_, page_);
    std::size_t left_out = 0;
    bool first = true;
    bool apart = false;
    for (const Finding& finding : analysis_.findings) {
      if (finding.severity == Severity::info && !verbose_) continue;
      if (!first && !apart && is_hypothetical(finding)) {
        apart = true;
        page_.blank();
        page_.line(page_.paint(Tone::strong, "What would fail on the targets; nothing of it has failed yet"));
      }
      const bool room = first || page_.lines() < kScreen;
      const Detail detail = verbose_        ? Detail::everything
                            : problems <= 1 ? Detail::full
                            : first         ? Detail::shared
                                            : Detail::brief;
      if (room || verbose_) print_finding(finding, detail, page_);
      if (detail < Detail::full || !(room || verbose_)) ++left_out;
      first = false;
    }
    if (!verbose_) print_notes();
    if (left_out == 0) return;
    page_.blank();
    page_.line("Everything: " +
               page_.paint(Tone::command, "kshim analyze --verbose " + reports_path(analysis_)));
  }

 private:
  // What is no problem takes one line each; what is how such libraries work takes none.
  void print_notes() {
    for (const Finding& finding : analysis_.findings) {
      if (finding.severity != Severity::info || is_by_design(finding)) continue;
      page_.blank();
      page_.titled(Tone::strong, "note:", title_of(finding));
    }
  }

  const Analysis& analysis_;
  bool verbose_;
  Page& page_;
};

}  // namespace

std::string render_text(const Analysis& dirty, const RenderOptions& options) {
  const Analysis analysis = cleaned(dirty, options.unicode);
  Page page(options);
  print_verdict(analysis, page);
  print_ending(analysis, page);
  Findings(analysis, options.verbose, page).print();
  print_fleet(analysis.fleet, options.verbose, page);
  print_blind(analysis, page);
  for (const std::string& note : analysis.notes) {
    page.blank();
    page.titled(Tone::strong, "note:", note);
  }
  return std::move(page).take();
}

}  // namespace kshim::analysis

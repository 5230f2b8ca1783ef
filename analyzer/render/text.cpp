// SPDX-License-Identifier: Apache-2.0
// The analysis as text: one screen, the most important line first. People paste it into issues.
#include "analyzer/text/text.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/render/clean.h"
#include "analyzer/render/finding_text.h"
#include "analyzer/render/page.h"
#include "analyzer/render/render.h"

namespace kshim::analysis {
namespace {

constexpr std::size_t kScreen = 40;  // lines

std::size_t count(const Analysis& analysis, Severity severity) {
  return static_cast<std::size_t>(
      std::count_if(analysis.findings.begin(), analysis.findings.end(),
                    [&](const Finding& finding) { return finding.severity == severity; }));
}

// The simulator's names say so themselves.
std::string gpu_text(const DeviceSummary& device) {
  constexpr std::string_view kSimulated = " (simulated)";
  std::string_view name = device.name;
  if (name.ends_with(kSimulated)) name.remove_suffix(kSimulated.size());
  return fmt::format("{} ({}{})", name, device.cc ? image::to_name(*device.cc).view() : "?",
                     device.simulated ? ", simulated" : "");
}

std::string gpus_text(const Analysis& analysis) {
  // In the order of their ordinals, as the reports have them.
  std::vector<std::string> names;
  for (const DeviceSummary& device : analysis.devices) {
    std::string name = gpu_text(device);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  if (names.size() > 3) return fmt::format("{} kinds of GPUs", names.size());
  return enumerate(names);
}

std::string modules_text(const Analysis& analysis) {
  std::uint64_t modules = 0;
  for (const ProcessSummary& process : analysis.processes) modules += process.modules;
  std::string text = fmt::format("{} loaded", counted(modules, "kernel module"));
  if (analysis.processes.size() > 1) text += fmt::format(" in {} processes", analysis.processes.size());
  return text;
}

std::vector<std::string> incomplete_reports(const Analysis& analysis) {
  std::vector<std::string> out;
  for (const ProcessSummary& process : analysis.processes) {
    if (!process.complete) out.emplace_back(basename_of(process.report));
  }
  return out;
}

// A gap that nobody ran into leaves the verdict "ok", but something is missing.
std::string outcome(const Analysis& analysis) {
  const bool gap = std::any_of(analysis.findings.begin(), analysis.findings.end(),
                               [](const Finding& finding) { return finding.cause == Cause::latent_gap; });
  return gap ? "nothing failed" : "nothing missing";
}

// A driver that was asked for nothing: no claim is made of images that were never needed.
bool used_nothing(const Analysis& analysis) {
  return analysis.devices.empty() && analysis.findings.empty() &&
         std::all_of(analysis.processes.begin(), analysis.processes.end(),
                     [](const ProcessSummary& process) { return process.modules == 0; });
}

bool failed_by_itself(const Analysis& analysis) {
  return analysis.term_signal || analysis.exit_status.value_or(0) != 0;
}

std::string ending_text(const Analysis& analysis) {
  if (analysis.term_signal) return fmt::format("the program was ended by signal {}", *analysis.term_signal);
  return fmt::format("the program ended with {} for a reason that no report shows", *analysis.exit_status);
}

void print_verdict(const Analysis& analysis, Page& page) {
  const std::string gpus = gpus_text(analysis);
  switch (analysis.verdict) {
    case Verdict::ok:
      if (failed_by_itself(analysis)) {
        page.titled(Tone::strong, outcome(analysis) == "nothing failed" ? "no failure seen:" : "no gap seen:",
                    fmt::format("{}{}{}; {}", modules_text(analysis), gpus.empty() ? "" : " on ", gpus,
                                ending_text(analysis)));
        break;
      }
      if (used_nothing(analysis)) {
        page.titled(Tone::good,
                    "ok:", "CUDA was initialised, and neither a GPU nor a kernel module was used");
        break;
      }
      page.titled(Tone::good, "ok:",
                  fmt::format("{}, {}{}{}", modules_text(analysis), outcome(analysis),
                              gpus.empty() ? "" : " on ", gpus));
      break;
    case Verdict::no_cuda:
      page.titled(Tone::strong,
                  "no CUDA:", "no process that kshim could look into has asked the driver to initialise");
      break;
    case Verdict::incomplete:
      page.titled(
          Tone::warning, "incomplete:",
          fmt::format("{}, {} so far; {} no end: the process was killed, left by _exit, or still runs",
                      modules_text(analysis), outcome(analysis),
                      fmt::format("{} {}", enumerate(incomplete_reports(analysis)),
                                  incomplete_reports(analysis).size() == 1 ? "has" : "have")));
      break;
    case Verdict::blind:
      page.titled(Tone::warning, "blind:", "nothing was recorded where it should have been");
      break;
    case Verdict::gap:
    case Verdict::failure:
      break;
  }
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
  if (analysis.processes.size() == 1) return shell_quote(analysis.processes.front().report);
  std::string folder;
  for (const ProcessSummary& process : analysis.processes) {
    const std::string own = process.report.substr(0, process.report.rfind('/') + 1);
    if (!folder.empty() && folder != own) return "REPORTS";
    folder = own;
  }
  return folder.empty() ? "." : shell_quote(folder);
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
    for (const Finding& finding : analysis_.findings) {
      if (finding.severity == Severity::info && !verbose_) continue;
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
  // What is no problem takes one line each.
  void print_notes() {
    for (const Finding& finding : analysis_.findings) {
      if (finding.severity != Severity::info) continue;
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
  print_blind(analysis, page);
  for (const std::string& note : analysis.notes) {
    page.blank();
    page.titled(Tone::strong, "note:", note);
  }
  return std::move(page).take();
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// The verdict in a sentence, where there is no finding to say it.
#include "analyzer/say/verdict_line.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

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

// Of many, some names and how many more.
template <class Which>
std::vector<std::string> reports_that(const Analysis& analysis, Which&& which) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> out;
  std::size_t more = 0;
  for (const ProcessSummary& process : analysis.processes) {
    if (!which(process)) continue;
    if (out.size() < kNamed) {
      out.emplace_back(basename_of(process.report));
    } else {
      ++more;
    }
  }
  if (more != 0) out.push_back(fmt::format("{} more", more));
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
  if (std::any_of(analysis.devices.begin(), analysis.devices.end(),
                  [](const DeviceSummary& device) { return device.simulated; }))
    return fmt::format(
        "the program ended with {}: a simulated GPU runs no kernel, so results stay zero, and a program that "
        "checks them fails",
        *analysis.exit_status);
  return fmt::format("the program ended with {} for a reason that no report shows", *analysis.exit_status);
}

VerdictLine ok_line(const Analysis& analysis) {
  const std::string gpus = gpus_text(analysis);
  if (failed_by_itself(analysis)) {
    return {Tone::strong, outcome(analysis) == "nothing failed" ? "no failure seen:" : "no gap seen:",
            fmt::format("{}{}{}; {}", modules_text(analysis), gpus.empty() ? "" : " on ", gpus,
                        ending_text(analysis))};
  }
  if (used_nothing(analysis)) {
    return {Tone::good, "ok:", "CUDA was initialized, and neither a GPU nor a kernel module was used"};
  }
  return {
      Tone::good, "ok:",
      fmt::format("{}, {}{}{}", modules_text(analysis), outcome(analysis), gpus.empty() ? "" : " on ", gpus)};
}

bool recorded_any(const Analysis& analysis) {
  return std::any_of(analysis.processes.begin(), analysis.processes.end(),
                     [](const ProcessSummary& process) { return process.modules != 0; });
}

}  // namespace

VerdictLine verdict_line(const Analysis& analysis) {
  switch (analysis.verdict) {
    case Verdict::ok:
      return ok_line(analysis);
    case Verdict::no_cuda:
      return {Tone::strong, "no CUDA:", "no watched process initialized CUDA"};
    case Verdict::incomplete: {
      const auto reports =
          reports_that(analysis, [](const ProcessSummary& process) { return !process.complete; });
      const auto lossy =
          reports_that(analysis, [](const ProcessSummary& process) { return process.lost != 0; });
      if (reports.empty() && !lossy.empty()) {
        const bool damaged = std::any_of(analysis.processes.begin(), analysis.processes.end(),
                                         [](const ProcessSummary& process) { return process.damaged; });
        return {Tone::warning, "incomplete:",
                fmt::format("{}, {} in what is there; {} {} records that {}", modules_text(analysis),
                            outcome(analysis), enumerate(lossy), lossy.size() == 1 ? "lacks" : "lack",
                            damaged ? "are damaged or gone" : "could not be written")};
      }
      if (reports.empty()) {
        return {
            Tone::warning, "incomplete:",
            fmt::format("{}, {}; some questions have no answer", modules_text(analysis), outcome(analysis))};
      }
      return {Tone::warning, "incomplete:",
              fmt::format("{}, {} so far; {} {} no end: the process was killed, left by _exit, or still runs",
                          modules_text(analysis), outcome(analysis), enumerate(reports),
                          reports.size() == 1 ? "has" : "have")};
    }
    case Verdict::blind:
      return {Tone::warning, "blind:",
              recorded_any(analysis) ? fmt::format("{}, {}, and not all of it was watched",
                                                   modules_text(analysis), outcome(analysis))
                                     : "kshim could not watch the program, and nothing is recorded"};
    case Verdict::gap:
    case Verdict::failure:
      break;
  }
  return {};
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
// The verdict in a sentence, where there is no finding to say it.
#include "analyzer/render/sentences.h"

namespace kshim::render {
using advise::FleetArch;
using core::enumerate;
using core::Tone;
using data::last_toolkit_for;
using data::ToolkitRow;
using verbs::Analysis;
using verbs::ProcessSummary;
using verbs::Verdict;

namespace {

std::string gpus_text(const Analysis& analysis) {
  // In the order of their ordinals, as the reports have them.
  std::vector<std::string> names;
  for (const verbs::DeviceSummary& device : analysis.devices) {
    // The simulator's names say so themselves.
    constexpr std::string_view kSimulated = " (simulated)";
    std::string name = device.name;
    if (name.ends_with(kSimulated)) name.resize(name.size() - kSimulated.size());
    name += fmt::format(" ({}{})", device.cc ? image::to_name(*device.cc).view() : "?",
                        device.simulated ? ", simulated" : "");
    if (!core::contains(names, name)) names.push_back(std::move(name));
  }
  if (names.size() > 3) return fmt::format("{} kinds of GPUs", names.size());
  return enumerate(names);
}

std::string modules_text(const Analysis& analysis) {
  std::uint64_t modules = 0;
  for (const ProcessSummary& process : analysis.processes) modules += process.modules;
  std::string text = fmt::format("{} loaded", core::counted(modules, "kernel module"));
  if (analysis.processes.size() > 1) text += fmt::format(" in {} processes", analysis.processes.size());
  return text;
}

// Of many, some names and how many more.
template <class Which>
std::vector<std::string> reports_that(const Analysis& analysis, Which&& which) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> out;
  for (const ProcessSummary& process : analysis.processes)
    if (which(process)) out.emplace_back(core::basename_of(process.report));
  const std::size_t all = out.size();
  out.resize(std::min(all, kNamed));
  if (all > kNamed) out.push_back(fmt::format("{} more", all - kNamed));
  return out;
}

// A gap that nobody ran into leaves the verdict "ok", but something is missing.
bool has_gap(const Analysis& analysis) {
  return core::contains(core::mapped(analysis.findings, &core::Finding::cause), core::Cause::latent_gap);
}
const char* outcome(const Analysis& analysis) {
  return has_gap(analysis) ? "nothing failed" : "nothing missing";
}

bool recorded_any(const Analysis& analysis) {
  return std::ranges::any_of(analysis.processes,
                             [](const ProcessSummary& process) { return process.modules != 0; });
}

bool is_simulated(const Analysis& analysis) {
  return std::ranges::any_of(analysis.devices, &verbs::DeviceSummary::simulated);
}

// The beginning of a line that may be long.
std::string quoted_line(const std::string& line) {
  constexpr std::size_t kMost = 160;
  if (line.size() <= kMost) return line;
  std::size_t end = kMost;
  while (end != 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
  return line.substr(0, end) + "...";
}

std::string ending_text(const Analysis& analysis) {
  if (analysis.term_signal) return fmt::format("the program was ended by signal {}", *analysis.term_signal);
  std::string text = fmt::format("the program ended with {}", *analysis.exit_status);
  if (!analysis.findings.empty()) return text;
  const verbs::LastWords& last = analysis.last_words;
  if (last.exception) {
    text += fmt::format(": {}", quoted_line(last.line));
    if (!last.about_gpu) text += ", which is no failure of CUDA's";
  } else if (!last.line.empty()) {
    text += fmt::format("; its stderr ends with \"{}\"", quoted_line(last.line));
  } else {
    text += analysis.heard
                ? ", and wrote no reason to stderr"
                : " for a reason that no report shows; its own output may say it (kshim explain --log FILE)";
  }
  // What computes nothing gives wrong results: a program that checks them says so.
  const bool checks = !last.exception || last.line.starts_with("AssertionError");
  if (checks && recorded_any(analysis) && is_simulated(analysis))
    text += "; a simulated GPU runs no kernel, and its results are zeros";
  return text;
}

// What a program cannot find beside simulated GPUs; empty where that is not why.
std::string limit_of_simulation(const Analysis& analysis) {
  if (!analysis.no_kernel_module || recorded_any(analysis)) return {};
  if (!analysis.needs_module.empty())
    return fmt::format(
        "; {} needs the driver's kernel module, which simulated GPUs do not have: a limit of --simulate, and "
        "no fault of the program or a library",
        analysis.needs_module);
  if (!is_simulated(analysis) || !analysis.has_jax) return {};
  return "; JAX looks for /dev/nvidia0 before it asks the driver, and finds no GPU with --simulate";
}

std::string on_gpus(const Analysis& analysis) {
  const std::string gpus = gpus_text(analysis);
  return gpus.empty() ? gpus : " on " + gpus;
}

VerdictLine failed_line(const Analysis& analysis) {
  return {Tone::strong, has_gap(analysis) ? "no failure seen:" : "no gap seen:",
          fmt::format("{}{}; {}{}", modules_text(analysis), on_gpus(analysis), ending_text(analysis),
                      limit_of_simulation(analysis))};
}

VerdictLine ok_line(const Analysis& analysis) {
  return {Tone::good,
          "ok:", fmt::format("{}, {}{}", modules_text(analysis), outcome(analysis), on_gpus(analysis))};
}

VerdictLine idle_line(const Analysis& analysis) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> names = analysis.mapped;
  const std::size_t more = names.size() - std::min(names.size(), kNamed);
  names.resize(names.size() - more);
  if (more != 0) names.push_back(fmt::format("{} more", more));
  const bool told = worst(analysis) >= core::Severity::warning;  // why
  return {
      Tone::strong, "idle:",
      fmt::format("the program initialized CUDA and used no kernel{}{}{}{}{}", on_gpus(analysis),
                  names.empty() ? "" : fmt::format(", with {} loaded", enumerate(names)),
                  told ? "" : ": it ran on the CPU, or had no work for a GPU",
                  told ? "" : limit_of_simulation(analysis),
                  analysis.heard || told ? "" : "; its own output may say why (kshim explain --log FILE)")};
}

// The first and the last toolkit that emit code which serves a GPU.
std::string toolkit_range(image::ComputeCapability gpu) {
  const image::Arch own{gpu, image::Suffix::none};
  const ToolkitRow* first = data::first_toolkit_for(own);
  const ToolkitRow* last = last_toolkit_for(own);
  if (first == nullptr) return fmt::format("no toolkit that is known builds for {}", name(gpu));
  const bool ended = last != nullptr && last->version < data::toolkits().back().version;
  return ended ? fmt::format("CUDA {} is the last for {}", name(last->version), name(gpu))
               : fmt::format("CUDA {} is the first for {}", name(first->version), name(gpu));
}

}  // namespace

VerdictLine verdict_line(const Analysis& analysis) {
  switch (analysis.verdict) {
    case Verdict::ok:
      return ok_line(analysis);
    case Verdict::idle:
      return idle_line(analysis);
    case Verdict::no_cuda:
      return {Tone::strong,
              "no CUDA:", "no watched process initialized CUDA" + limit_of_simulation(analysis)};
    case Verdict::incomplete: {
      const auto reports =
          reports_that(analysis, [](const ProcessSummary& process) { return !process.complete; });
      const auto lossy =
          reports_that(analysis, [](const ProcessSummary& process) { return process.lost != 0; });
      if (reports.empty() && !lossy.empty()) {
        const bool damaged = std::ranges::any_of(
            analysis.processes, [](const ProcessSummary& process) { return process.damaged; });
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
      if (analysis.term_signal)
        return {Tone::warning, "incomplete:",
                fmt::format("{}, {} so far; {}", modules_text(analysis), outcome(analysis),
                            ending_text(analysis))};
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
    case Verdict::failure:
      if (worst(analysis) < core::Severity::error) return failed_line(analysis);
      break;
    case Verdict::gap:
      break;
  }
  return {};
}

std::string names_of(const std::vector<image::ComputeCapability>& gpus) {
  return core::join(core::mapped(gpus, [](image::ComputeCapability gpu) { return name(gpu); }), ", ");
}

std::string list_text(const advise::FleetList& list) {
  std::string out;
  for (const FleetArch& row : list.archs) {
    if (!out.empty()) out += ' ';
    out += sm_name(row.arch);
    const bool own = row.serves.size() == 1 && row.serves.front() == row.arch.cc;
    if (!own && !row.serves.empty()) out += fmt::format(" (for {})", names_of(row.serves));
  }
  return out;
}

std::string cmake_text(const advise::FleetPlan& plan) {
  std::vector<std::string> parts;
  for (const FleetArch& row : plan.smallest.archs) {
    const std::string digits = sm_name(row.arch).substr(3);  // without sm_
    parts.push_back(row.arch == plan.ptx ? digits : digits + "-real");
  }
  return core::join(parts, ";");
}

std::string toolkits_text(const advise::FleetPlan& plan) {
  std::string which;
  if (plan.toolkits.size() == 1) {
    which = fmt::format("CUDA {}", name(plan.toolkits.front()));
  } else if (plan.toolkits.size() == 2) {
    which = fmt::format("CUDA {} or {}", name(plan.toolkits.front()), name(plan.toolkits.back()));
  } else if (!plan.toolkits.empty()) {
    which = fmt::format("CUDA {} to {}", name(plan.toolkits.front()), name(plan.toolkits.back()));
  }
  if (plan.compiled.empty() && plan.unserved.empty())
    return which.empty() ? "no single toolkit builds all of it" : which + " builds all of it";
  std::vector<image::ComputeCapability> left = plan.compiled;
  left.insert(left.end(), plan.unserved.begin(), plan.unserved.end());
  std::vector<std::string> reasons = core::mapped(left, toolkit_range);
  // Of those that are built, the one that keeps the others out: with the earliest last toolkit.
  const FleetArch* oldest = nullptr;
  for (const FleetArch& row : plan.smallest.archs) {
    const ToolkitRow* last = last_toolkit_for(row.arch);
    const ToolkitRow* known = oldest != nullptr ? last_toolkit_for(oldest->arch) : nullptr;
    if (last != nullptr && (known == nullptr || last->version < known->version)) oldest = &row;
  }
  if (oldest != nullptr && !oldest->serves.empty() &&
      last_toolkit_for(oldest->arch)->version < data::toolkits().back().version)
    reasons.push_back(toolkit_range(oldest->arch.cc));
  std::string out = fmt::format("no single toolkit builds for all of them ({})", enumerate(reasons));
  if (!which.empty()) {
    out += fmt::format("; the list is what {} builds", which);
    if (!plan.compiled.empty())
      out += fmt::format(", and {} compiles its PTX at load", names_of(plan.compiled));
    if (!plan.unserved.empty())
      out += fmt::format(", and {} needs a build of its own", names_of(plan.unserved));
  }
  return out;
}

std::string breaks_text(const advise::FleetPlan& plan) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::pair<std::string, std::uint64_t>> hosts;  // GPUs of one kind on one host, and how many
  std::uint64_t told = 0;
  for (const advise::FleetBreak& row : plan.breaks) {
    std::string text =
        fmt::format("{} ({}, {})", row.host.empty() ? "this machine" : row.host, row.gpu, name(row.cc));
    const auto known = std::ranges::find(hosts, text, [](const auto& each) { return each.first; });
    if (known == hosts.end() && hosts.size() == kNamed) continue;
    if (known != hosts.end()) {
      ++known->second;
    } else {
      hosts.emplace_back(std::move(text), 1);
    }
    ++told;
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : hosts)
    parts.push_back(count == 1 ? text : fmt::format("{} GPUs of {}", count, text));
  if (plan.breaks_total > told) parts.push_back(core::counted(plan.breaks_total - told, "more GPU"));
  return enumerate(parts);
}

}  // namespace kshim::render

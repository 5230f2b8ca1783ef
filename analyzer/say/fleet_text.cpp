// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/fleet.h"
#include "analyzer/core/text.h"

namespace kshim::analysis {
namespace {

std::string real_name(image::Arch arch) {
  return std::string(image::to_name(image::ImageKind::cubin, arch).view());
}

std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

std::string name(image::ComputeCapability cc) { return std::string(image::to_name(cc).view()); }

// The first and the last toolkit that emit code which serves a GPU.
std::string toolkit_range(image::ComputeCapability gpu) {
  const image::Arch own{gpu, image::Suffix::none};
  const ToolkitRow* first = first_toolkit_for(own);
  const ToolkitRow* last = last_toolkit_for(own);
  if (first == nullptr) return fmt::format("no toolkit that is known builds for {}", name(gpu));
  const bool ended = last != nullptr && last->version < toolkits().back().version;
  return ended ? fmt::format("CUDA {} is the last for {}", name(last->version), name(gpu))
               : fmt::format("CUDA {} is the first for {}", name(first->version), name(gpu));
}

}  // namespace

std::string names_of(const std::vector<image::ComputeCapability>& gpus) {
  std::vector<std::string> names;
  for (const image::ComputeCapability gpu : gpus) names.push_back(name(gpu));
  return join(names, ", ");
}

std::string list_text(const FleetList& list) {
  std::string out;
  for (const FleetArch& row : list.archs) {
    if (!out.empty()) out += ' ';
    out += real_name(row.arch);
    const bool own = row.serves.size() == 1 && row.serves.front() == row.arch.cc;
    if (!own && !row.serves.empty()) out += fmt::format(" (for {})", names_of(row.serves));
  }
  return out;
}

std::string cmake_text(const FleetPlan& plan) {
  std::vector<std::string> parts;
  for (const FleetArch& row : plan.smallest.archs) {
    const std::string digits = real_name(row.arch).substr(3);  // without sm_
    parts.push_back(row.arch == plan.ptx ? digits : digits + "-real");
  }
  return join(parts, ";");
}

std::string toolkits_text(const FleetPlan& plan) {
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
  std::vector<std::string> reasons;
  for (const image::ComputeCapability gpu : left) reasons.push_back(toolkit_range(gpu));
  // Of those that are built, the one that keeps the others out: with the earliest last toolkit.
  const FleetArch* oldest = nullptr;
  for (const FleetArch& row : plan.smallest.archs) {
    const ToolkitRow* last = last_toolkit_for(row.arch);
    const ToolkitRow* known = oldest != nullptr ? last_toolkit_for(oldest->arch) : nullptr;
    if (last != nullptr && (known == nullptr || last->version < known->version)) oldest = &row;
  }
  if (oldest != nullptr && !oldest->serves.empty() &&
      last_toolkit_for(oldest->arch)->version < toolkits().back().version)
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

std::string size_text(const FleetPlan& plan, const FleetList& list) {
  const auto added =
      std::count_if(list.archs.begin(), list.archs.end(), [](const FleetArch& row) { return row.added; });
  if (added == 0 || !list.bytes) return {};
  return fmt::format("about {}", size_text(*list.bytes)) +
         (added > 1 ? fmt::format(", {} each", size_text(plan.bytes_each)) : std::string());
}

std::string breaks_text(const FleetPlan& plan) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::pair<std::string, std::uint64_t>> hosts;  // GPUs of one kind on one host, and how many
  std::uint64_t told = 0;
  for (const FleetBreak& row : plan.breaks) {
    std::string text =
        fmt::format("{} ({}, {})", row.host.empty() ? "this machine" : row.host, row.gpu, name(row.cc));
    const auto known =
        std::find_if(hosts.begin(), hosts.end(), [&](const auto& host) { return host.first == text; });
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
  if (plan.breaks_total > told) parts.push_back(counted(plan.breaks_total - told, "more GPU"));
  return enumerate(parts);
}

}  // namespace kshim::analysis

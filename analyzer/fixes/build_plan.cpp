// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/build_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kshim/image/compute_capability.h"

namespace kshim::analysis {
namespace {

using image::Arch;
using image::Candidate;
using image::ComputeCapability;
using image::ImageKind;
using image::Suffix;
using image::Version;

template <class Visit>
void each_target(const ToolkitRow& toolkit, Visit&& visit) {
  std::string_view rest = toolkit.targets;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (const auto arch = image::parse_arch(word)) visit(*arch);
  }
}

// PTX of a Jetson's target would compile for a desktop GPU too, but is nobody's choice for one.
bool odd_ptx(ImageKind kind, ComputeCapability target, ComputeCapability device) {
  return kind == ImageKind::ptx && target != device && image::is_tegra(target);
}

std::optional<Arch> best_target(const ToolkitRow& toolkit, ImageKind kind, ComputeCapability device,
                                Version driver) {
  std::optional<Arch> best;
  each_target(toolkit, [&](Arch arch) {
    if (arch.suffix != Suffix::none || odd_ptx(kind, arch.cc, device)) return;
    if (!image::judge({kind, arch, toolkit.isa}, {device, driver, {}}).fits) return;
    if (!best || *best < arch) best = arch;
  });
  return best;
}

PlannedArch& at(std::vector<PlannedArch>& archs, Arch arch) {
  auto found =
      std::find_if(archs.begin(), archs.end(), [&](const PlannedArch& row) { return row.arch == arch; });
  if (found == archs.end()) found = archs.insert(archs.end(), {arch, false, false, false});
  return *found;
}

// PTX of the newest plain architecture, so that GPUs which are newer still can compile it. There is always
// one: what is added for the device is plain.
void add_newest_ptx(std::vector<PlannedArch>& archs) {
  PlannedArch* newest = nullptr;
  for (PlannedArch& row : archs) {
    if (row.arch.suffix == Suffix::none && (newest == nullptr || newest->arch < row.arch)) newest = &row;
  }
  if (newest != nullptr) newest->ptx = true;
}

bool builds_all(const ToolkitRow& toolkit, const std::vector<Candidate>& have) {
  return std::all_of(have.begin(), have.end(), [&](const Candidate& image) {
    return image.kind == ImageKind::ltoir || builds_for(toolkit, image.arch);
  });
}

PlannedArch* sibling(std::vector<PlannedArch>& archs, const PlannedArch& plain) {
  for (PlannedArch& row : archs) {
    if (row.arch.cc == plain.arch.cc && row.arch.suffix == Suffix::f) return &row;
  }
  return nullptr;
}

// nvcc refuses sm_120 beside sm_120f ("The same GPU code generated for non family-specific and
// family-specific GPU arch", measured with 13.0; PTX of one beside machine code of the other is accepted).
// The f image serves the same GPUs.
void settle_families(std::vector<PlannedArch>& archs) {
  for (PlannedArch& row : archs) {
    if (row.arch.suffix != Suffix::none || !row.sass) continue;
    PlannedArch* family = sibling(archs, row);
    if (family == nullptr || !family->sass) continue;
    row.sass = false;
    family->added = family->added || row.added;
    row.added = false;
  }
  archs.erase(std::remove_if(archs.begin(), archs.end(),
                             [](const PlannedArch& row) { return !row.sass && !row.ptx; }),
              archs.end());
}

std::string digits(Arch arch) {
  constexpr std::array<std::string_view, 3> kSuffix = {"", "a", "f"};
  return fmt::format("{}{}", arch.cc.number(), kSuffix[static_cast<std::size_t>(arch.suffix)]);
}

std::string dotted(Arch arch) {
  const std::string plain = digits(arch);
  return fmt::format("{}.{}", arch.cc.major,
                     plain.substr(plain.find_first_of("0123456789") + std::to_string(arch.cc.major).size()));
}

std::string gencode(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    const std::string arch = digits(row.arch);
    for (const auto& [wanted, prefix] : {std::pair{row.sass, "sm_"}, std::pair{row.ptx, "compute_"}}) {
      if (!wanted) continue;
      out += fmt::format("{}-gencode arch=compute_{},code={}{}", out.empty() ? "" : " ", arch, prefix, arch);
    }
  }
  return out;
}

std::string cmake_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    const char* kind = row.sass && row.ptx ? "" : row.sass ? "-real" : "-virtual";
    out += fmt::format("{}{}{}", out.empty() ? "" : ";", digits(row.arch), kind);
  }
  return out;
}

// CuPy's: what nvcc takes after each -gencode, joined by semicolons.
std::string values_list(const BuildPlan& plan) {
  constexpr std::string_view kOption = "-gencode ";
  std::string out = gencode(plan).substr(kOption.size());
  for (std::size_t at = 0; (at = out.find(" -gencode ", at)) != std::string::npos;)
    out.replace(at, kOption.size() + 1, ";");
  return out;
}

// Lists of plain numbers, to which the build adds PTX of its own accord.
std::string numbers_list(const BuildPlan& plan) {
  std::string out;
  for (const PlannedArch& row : plan.archs) {
    if (row.sass || plan.archs.size() == 1)
      out += fmt::format("{}{}", out.empty() ? "" : ";", digits(row.arch));
  }
  return out;
}

// PyTorch's list has no way to say "PTX only": an entry always brings machine code. Where that would meet its
// family-specific sibling, the newest other plain entry brings the PTX. An entry with a suffix has none: its
// PTX compiles for no GPU that its machine code does not serve.
std::string torch_list(const BuildPlan& plan) {
  std::vector<PlannedArch> archs;
  std::vector<PlannedArch> all = plan.archs;
  for (const PlannedArch& row : all) {
    const bool meets = row.arch.suffix == Suffix::none && !row.sass && sibling(all, row) != nullptr;
    if (!meets) archs.push_back(row);
  }
  if (archs.size() != all.size()) add_newest_ptx(archs);
  std::string out;
  for (const PlannedArch& row : archs) {
    const bool ptx = row.ptx && row.arch.suffix == Suffix::none;
    out += fmt::format("{}{}{}", out.empty() ? "" : ";", dotted(row.arch), ptx ? "+PTX" : "");
  }
  return out;
}

bool emits_code_for(const ToolkitRow& toolkit, ComputeCapability device) {
  return best_target(toolkit, ImageKind::cubin, device, {}).has_value();
}

}  // namespace

std::optional<BuildPlan> plan_build(const std::vector<Candidate>& have, ComputeCapability device,
                                    const ToolkitRow& toolkit, Version driver) {
  BuildPlan plan;
  plan.toolkit = &toolkit;
  for (const Candidate& image : have) {
    if (image.kind == ImageKind::ltoir) continue;
    if (!builds_for(toolkit, image.arch)) {
      plan.dropped.push_back(image);
      continue;
    }
    PlannedArch& row = at(plan.archs, image.arch);
    (image.kind == ImageKind::cubin ? row.sass : row.ptx) = true;
  }
  auto target = best_target(toolkit, ImageKind::cubin, device, driver);
  if (!target) {
    target = best_target(toolkit, ImageKind::ptx, device, driver);
    plan.by_ptx = true;
  }
  if (!target) return std::nullopt;
  PlannedArch& row = at(plan.archs, *target);
  (plan.by_ptx ? row.ptx : row.sass) = true;
  row.added = true;
  add_newest_ptx(plan.archs);
  settle_families(plan.archs);
  std::sort(plan.archs.begin(), plan.archs.end(),
            [](const PlannedArch& a, const PlannedArch& b) { return a.arch < b.arch; });
  return plan;
}

const ToolkitRow* recommend_toolkit(ComputeCapability device, std::optional<Version> near, Version driver,
                                    const std::vector<Candidate>& have) {
  const ToolkitRow* oldest = nullptr;
  const ToolkitRow* newest = nullptr;
  const ToolkitRow* complete = nullptr;
  const ToolkitRow* nearest = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    if (!emits_code_for(row, device)) continue;
    if (oldest == nullptr) oldest = &row;
    if (driver.known() && row.version > driver) continue;
    newest = &row;
    if (builds_all(row, have)) complete = &row;
    if (near && row.version.major == near->major) nearest = &row;
  }
  if (nearest != nullptr) return nearest;
  if (complete != nullptr) return complete;
  return newest != nullptr ? newest : oldest;
}

std::string arch_list(const BuildPlan& plan, ArchList style) {
  switch (style) {
    case ArchList::gencode:
      return gencode(plan);
    case ArchList::values:
      return values_list(plan);
    case ArchList::cmake:
      return cmake_list(plan);
    case ArchList::numbers:
      return numbers_list(plan);
    case ArchList::torch:
      return torch_list(plan);
  }
  return {};
}

std::string expand(const RecipeRow& recipe, const BuildPlan& plan, const RecipeWords& words) {
  const std::array<std::pair<std::string_view, std::string>, 8> values = {{
      {"{nvcc}", words.nvcc},
      {"{mode}", words.mode},
      {"{toolkit}", words.toolkit.empty() ? "/usr/local/cuda" : words.toolkit},
      {"{home}", words.toolkit.empty() ? "" : fmt::format("CUDA_HOME={} ", words.toolkit)},
      {"{list}", arch_list(plan, recipe.list)},
      {"{output}", words.output},
      {"{build}", words.build},
      {"{package}", words.package},
  }};
  // One pass from left to right: a value that happens to hold a placeholder is not expanded again.
  std::string out;
  for (std::string_view rest = recipe.command; !rest.empty();) {
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return rest.starts_with(v.first); });
    if (found != values.end()) {
      out += found->second;
      rest.remove_prefix(found->first.size());
    } else {
      out += rest.front();
      rest.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace kshim::analysis

// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/releases.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/text/text.h"

namespace kshim::analysis {
namespace {

using image::ComputeCapability;
using image::Version;

std::string name(Version version) { return std::string(image::to_name(version).view()); }

// The range of toolkits that build for all of these: "8.0 to 12.9", "12.8 and newer". A toolkit that drops an
// architecture does not take it up again, so the range has no holes.
std::string toolkit_range(const std::vector<image::Arch>& archs) {
  const ToolkitRow* first = nullptr;
  const ToolkitRow* last = nullptr;
  for (const ToolkitRow& row : toolkits()) {
    const auto builds = [&](image::Arch arch) { return builds_for(row, arch); };
    if (!std::all_of(archs.begin(), archs.end(), builds)) continue;
    if (first == nullptr) first = &row;
    last = &row;
  }
  if (first == nullptr) return {};
  if (last == &toolkits().back()) return fmt::format("CUDA {} and newer", name(first->version));
  if (first == last) return fmt::format("CUDA {}", name(first->version));
  return fmt::format("CUDA {} to {}", name(first->version), name(last->version));
}

const VendorLibraryRow* vendor_of(const Situation& at) {
  return find_vendor_library(at.archive.empty() ? at.object : at.archive);
}

// cuBLAS of CUDA 13.0 for x86-64 lacks sm_87, which the toolkit knows: the release that knows the GPU is no
// answer where the file is of such a release itself.
bool range_tells(const Situation& at, bool part_of_cuda) {
  if (!part_of_cuda) return false;
  const ToolkitRow* own = at.toolkit.known() ? toolkit_at_most(at.toolkit) : nullptr;
  return own == nullptr || !builds_for(*own, {*at.device, image::Suffix::none});
}

}  // namespace

std::string toolkit_range(ComputeCapability cc) {
  return toolkit_range(std::vector<image::Arch>{{cc, image::Suffix::none}});
}
std::string toolkit_range(const BuildPlan& plan) {
  std::vector<image::Arch> archs;
  for (const PlannedArch& row : plan.archs) archs.push_back(row.arch);
  return toolkit_range(archs);
}

bool is_vendors(const Situation& at) {
  const std::string_view file = at.archive.empty() ? at.object : at.archive;
  return vendor_of(at) != nullptr || find_probing_library(file) != nullptr;
}

void add_release_fix(const Situation& at, std::vector<Fix>& fixes) {
  const VendorLibraryRow* row = vendor_of(at);
  const std::string target(image::to_name(image::ImageKind::cubin, {*at.device, image::Suffix::none}).view());
  const std::string_view file = basename_of(at.archive.empty() ? at.object : at.archive);
  const bool part_of_cuda = row != nullptr && row->part_of_cuda;
  const std::string range = range_tells(at, part_of_cuda) ? toolkit_range(*at.device) : "";
  const GpuRow* gpu = find_gpu(*at.device);
  Fix fix;
  fix.kind = FixKind::reinstall;
  if (range.empty()) {
    fix.title = fmt::format("Use a version of {} that has {}", file, target);
    fix.why = part_of_cuda
                  ? fmt::format("it comes built, and leaves {} out though CUDA {} knows it", target,
                                name(at.toolkit))
                  : "it comes built, and its own releases decide which GPUs it serves, not those of CUDA";
  } else {
    fix.title = fmt::format("Use the {} of a CUDA release that serves this GPU", file);
    fix.why = fmt::format("it comes built; {} bring code for {}", range, target);
    fix.caveat = "what links against it has to be built for the same CUDA major version";
  }
  if (gpu != nullptr && gpu->tegra)
    fix.caveat += fmt::format("{}for a Jetson, take the one that comes with its JetPack or for its platform",
                              fix.caveat.empty() ? "" : "; ");
  fixes.push_back(std::move(fix));
}

bool is_torch_itself(const Situation& at) {
  const BuildRow* build = find_build(at.package, at.object);
  return build != nullptr && build->recipe == Recipe::torch_itself;
}

void add_torch_wheel_fix(const Situation& at, std::vector<Fix>& fixes) {
  const TorchWheelRow* row = find_torch_wheel(*at.device);
  const GpuRow* gpu = find_gpu(*at.device);
  if (row == nullptr) {
    if (gpu == nullptr || !gpu->tegra) return;
    fixes.push_back({FixKind::reinstall,
                     "Install NVIDIA's PyTorch wheel for this Jetson",
                     {},
                     "PyTorch's own wheels have no code for it",
                     ""});
    return;
  }
  Fix fix;
  fix.kind = FixKind::reinstall;
  fix.title = "Install a PyTorch wheel that has code for this GPU";
  fix.commands.push_back(
      fmt::format("pip install --force-reinstall torch torchvision torchaudio --index-url "
                  "https://download.pytorch.org/whl/{}",
                  row->index));
  fix.why = fmt::format("PyTorch's wheels for {} have code that runs on it", row->index);
  fix.caveat = "all three packages must come from the same index";
  if (!row->note.empty()) fix.caveat = fmt::format("{}; {}", row->note, fix.caveat);
  fixes.push_back(std::move(fix));
}

}  // namespace kshim::analysis

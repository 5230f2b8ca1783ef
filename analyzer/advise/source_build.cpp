// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/source_build.h"

#include <fmt/core.h>

#include <algorithm>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/releases.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/text.h"
#include "analyzer/data/reach.h"

namespace kshim::analysis {
namespace {

std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

// "2.7" is the tag v2.7.0, and what was read of an installed release is its own.
std::string tag_of(std::string_view release) {
  return fmt::format("v{}{}", release, std::count(release.begin(), release.end(), '.') < 2 ? ".0" : "");
}

// No published build had code for a GPU as old as that.
bool is_below(const WheelRow& row, image::ComputeCapability cc) {
  const auto images = images_of(row);
  return std::all_of(images.begin(), images.end(),
                     [&](const image::Candidate& image) { return cc < image.arch.cc; });
}

}  // namespace

image::Version source_asks_beyond(const AdviceInput& at) {
  const std::string distribution = wheel_of(at).distribution;
  const ToolkitRow* last = at.device ? last_with_code_for(*at.device) : nullptr;
  if (distribution.empty() || last == nullptr) return {};
  image::Version least;
  for (const SourceNeedRow& row : source_needs()) {
    if (row.distribution == distribution && (!least.known() || row.oldest_cuda < least))
      least = row.oldest_cuda;
  }
  return least.known() && last->version < least ? least : image::Version{};
}

bool add_source_build(const AdviceInput& at, std::vector<Fix>& fixes) {
  const BuildRow* build = find_build(at.package, at.object);
  if (!at.device || build == nullptr || build->recipe != Recipe::torch_itself) return false;
  constexpr std::string_view kProject = "torch";
  const WheelName wheel = wheel_of(at);
  const auto source =
      source_release_for(kProject, is_plain(wheel.version) ? wheel.version : "", *at.device, at.driver);
  if (!source) return false;
  const ToolkitRow& toolkit = *find_toolkit(source->cuda);
  std::vector<image::Candidate> have;
  for (const image::ComputeCapability cc : at.other_devices)
    have.push_back({image::ImageKind::cubin, {cc, image::Suffix::none}, {}});
  const auto plan = plan_build(have, *at.device, toolkit, at.driver);
  if (!plan) return false;
  RecipeWords words;
  words.toolkit = fmt::format("/usr/local/cuda-{}", name(source->cuda));
  words.nvcc = words.toolkit + "/bin/nvcc";
  Fix fix;
  fix.id = "build-from-source";
  fix.kind = source->same ? FixKind::rebuild : FixKind::downgrade;
  fix.title =
      fmt::format("Build PyTorch {} from its source with CUDA {}", source->release, name(source->cuda));
  fix.commands = {fmt::format("git clone --recursive --branch {} https://github.com/pytorch/pytorch",
                              tag_of(source->release)),
                  "cd pytorch && " + expand(row_of(build->recipe), *plan, words)};
  const std::string_view beyond = first_beyond(kProject, source->cuda);
  const ToolkitRow* last = last_toolkit_for({*at.device, image::Suffix::none});
  const bool dropped = last != nullptr && last != &toolkits().back();
  fix.why =
      fmt::format("the nvcc of {} can target {}, and {} was published for CUDA {}", toolkit_range(*at.device),
                  image::to_name(image::ImageKind::cubin, {*at.device, image::Suffix::none}).view(),
                  source->release, name(source->cuda));
  if (dropped && !beyond.empty())
    fix.why += fmt::format("; from {} on, the source asks for CUDA {}", beyond,
                           name(oldest_cuda_of(kProject, beyond)));
  std::vector<std::string> notes = {"it takes hours", "only this machine's GPUs get code"};
  if (is_below(*source->row, *at.device))
    notes.emplace_back(
        "no published build had code for a GPU as old as this: whether all of the source compiles for it is "
        "not "
        "known");
  if (const GpuRow* gpu = find_gpu(*at.device); gpu != nullptr && gpu->last_branch != 0)
    notes.push_back(fmt::format("keep the driver within R{}, the last branch for {} GPUs", gpu->last_branch,
                                gpu->family));
  fix.caveat = join(notes, "; ");
  fixes.push_back(std::move(fix));
  return true;
}

}  // namespace kshim::analysis

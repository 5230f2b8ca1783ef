// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"

namespace kshim::advise {

using image::Version;

Version least_source_cuda(const Facts& at) {
  const std::string distribution = wheel_of(at).distribution;
  Version least;
  for (const SourceNeedRow& row : source_needs()) {
    if (row.distribution == distribution && (!least.known() || row.oldest_cuda < least))
      least = row.oldest_cuda;
  }
  return least;
}

Version driver_limit(const Facts& at) {
  // A Jetson whose JetPack has ended: what the log names is of its JetPack.
  const bool jetson = !at.driver.cuda.known() && at.gpu.cc && find_gpu(*at.gpu.cc) != nullptr &&
                      find_gpu(*at.gpu.cc)->tegra && !can_ever_run(at.gpu.cc, toolkits().back().version);
  return jetson ? at.images.toolkit : at.driver.cuda;
}

namespace {

bool is_feasible(const Facts& at, const FixDraft& fix) {
  if (fix.system == "linux" && platform_of(at).starts_with("windows")) return false;
  if (!fix.cuda.known()) return true;
  const bool of_source = fix.id == "rebuild" && comes_built(at);
  if (of_source && fix.cuda < least_source_cuda(at)) return false;
  const GpuRow* gpu = at.gpu.cc ? find_gpu(*at.gpu.cc) : nullptr;
  // A Jetson has the driver of its JetPack, and no other.
  return gpu != nullptr && gpu->tegra ? can_run(at.gpu.cc, driver_limit(at), fix.cuda)
                                      : can_ever_run(at.gpu.cc, fix.cuda);
}

bool depends_on(const Facts& at, const FixDraft& fix, Assumed what) {
  const bool chosen = fix.id == "install-build";  // for this GPU or driver
  switch (what) {
    case Assumed::gpu:
      return chosen || fix.needs_any(need::gpu);
    case Assumed::cuda:
      return fix.cuda.known() && !chosen && !at.driver.cuda.known();
    case Assumed::driver:
      return fix.cuda.known() && fix.kind == FixKind::reinstall && at.images.toolkit.major < fix.cuda.major;
    case Assumed::system:
      return fix.needs_any(need::system);
    case Assumed::package_manager:
      return fix.needs_any(need::manager);
    case Assumed::python:
      return chosen && fix.pins_release();
  }
  return false;
}

// The fix stays right, and the package is not the way to it: false, and the command goes.
bool keeps_commands(FixDraft& fix) {
  const std::size_t before = fix.steps.size();
  for (const Command& command : fix.steps)
    if (const std::string_view package = unpublished_in(command); !package.empty())
      fix.caveat += fmt::format("{}PyPI has no {} as old as that", fix.caveat.empty() ? "" : "; ", package);
  std::erase_if(fix.steps, [](const Command& command) { return !unpublished_in(command).empty(); });
  return fix.steps.size() == before;
}

}  // namespace

void note_assumed(const Facts& at, FixDrafts& fixes) {
  for (FixDraft& fix : fixes)
    for (const Assumed what : at.process.unsaid)
      if (depends_on(at, fix, what)) fix.assumed.push_back(what);
}

void keep_feasible(const Facts& at, FixDrafts& fixes) {
  for (FixDraft& fix : fixes)
    if (!fix.cuda.known() && fix.kind == FixKind::reinstall && !fix.steps.empty())
      fix.cuda = cuda_of(fix.steps.back());
  std::erase_if(fixes, [&](const FixDraft& fix) { return !is_feasible(at, fix); });
  std::stable_partition(fixes.begin(), fixes.end(), keeps_commands);
  // A driver that was too old for one build is not asked to run a newer one.
  if (at.cause == Cause::ptx_newer_than_driver && !at.driver.cuda.known())
    std::erase_if(fixes, [&](const FixDraft& fix) {
      return fix.kind == FixKind::reinstall && fix.cuda.known() && !(fix.cuda < at.images.toolkit);
    });
  // What the driver does not run is no fix beside one that it does.
  const auto beyond = [&](const FixDraft& fix) {
    return fix.kind == FixKind::reinstall && !can_run(at.gpu.cc, at.driver.cuda, fix.cuda);
  };
  const auto runs = [&](const FixDraft& fix) { return !beyond(fix) && fix.kind != FixKind::fallback; };
  if (std::any_of(fixes.begin(), fixes.end(), runs)) std::erase_if(fixes, beyond);
  for (FixDraft& fix : fixes) {
    if (can_run(at.gpu.cc, at.driver.cuda, fix.cuda)) continue;
    const ToolkitRow* row = toolkit_at_most(fix.cuda);
    const std::string_view driver = fix.cuda.major >= 11 ? oldest_driver(at, fix.cuda.major)
                                    : row != nullptr     ? row->driver
                                                         : "";
    if (!driver.empty())
      fix.caveat +=
          fmt::format("{}it needs driver {} or newer, and yours is for CUDA {}",
                      fix.caveat.empty() ? "" : "; ", driver_text(at, driver), name(at.driver.cuda));
  }
}

}  // namespace kshim::advise

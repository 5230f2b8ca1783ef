// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/driver_fixes.h"

#include <fmt/core.h>

#include "analyzer/fixes/rebuild.h"
#include "analyzer/knowledge/knowledge.h"
#include "kshim/image/decompress.h"

namespace kshim::analysis {
namespace {

using image::Version;

std::string name(Version version) { return std::string(image::to_name(version).view()); }

}  // namespace

// 222: the driver's compiler is older than the PTX. A driver update helps only as far as the GPU is still
// supported.
void add_driver_fix(const Situation& at, Advice& advice) {
  Version isa;
  for (const image::Candidate& image : at.have) {
    if (image.kind == image::ImageKind::ptx && (!isa.known() || image.isa < isa) && image.isa.known())
      isa = image.isa;
  }
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  // Without the PTX at hand, its version is that of the toolkit that made it.
  const Version needed = isa.known() ? image::cuda_of_ptx_isa(isa) : at.have.empty() ? at.toolkit : Version{};
  if (needed.known() && last.known() && needed > last) {
    advice.dead_ends.push_back(
        {"updating the driver",
         fmt::format("R{} is the last driver branch for {} GPUs and reads PTX for CUDA {} at most; "
                     "this PTX needs CUDA {}",
                     gpu->last_branch, gpu->family, name(last), name(needed))});
    return;
  }
  Fix fix{FixKind::upgrade_driver, "Update the driver", {}, "a newer driver reads newer PTX", ""};
  const ToolkitRow* row = needed.known() ? toolkit_at_most(needed) : nullptr;
  if (row != nullptr && !row->driver.empty()) {
    fix.title = fmt::format("Update the driver to {} or newer", row->driver);
    fix.why = fmt::format("drivers for CUDA {} and newer read PTX {}", name(needed),
                          name(isa.known() ? isa : row->isa));
  }
  if (last.known())
    fix.caveat = fmt::format("stay within branch R{}: it is the last one for this GPU", gpu->last_branch);
  advice.fixes.push_back(std::move(fix));
}

// Within a CUDA major version, an older driver reads newer cubins.
void add_newer_driver_fixes(const Situation& at, Advice& advice) {
  const bool newer_cubin = at.newest_cubin.major > at.driver.major;
  const Version needed = newer_cubin ? Version{at.newest_cubin.major, 0} : image::kFirstZstdDriver;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const ToolkitRow* row = toolkit_at_most(needed);
  if (last.known() && needed > last) {
    advice.dead_ends.push_back(
        {"updating the driver",
         fmt::format("R{} is the last driver branch for {} GPUs", gpu->last_branch, gpu->family)});
  } else if (newer_cubin && row != nullptr) {
    advice.fixes.push_back({FixKind::upgrade_driver,
                            row->driver.empty()
                                ? fmt::format("Update the driver to one for CUDA {}", name(needed))
                                : fmt::format("Update the driver to {} or newer", row->driver),
                            {},
                            fmt::format("drivers for CUDA {} and newer read the cubins of CUDA {}.x",
                                        name(needed), needed.major),
                            ""});
  } else {
    advice.fixes.push_back({FixKind::upgrade_driver,
                            "Update the driver to 550.54.14 or newer",
                            {},
                            "drivers for CUDA 12.4 and newer read compressed images",
                            ""});
  }
  if (newer_cubin && at.device) add_rebuild_for_driver(at, advice.fixes);
}

// 35: within a CUDA major version any driver of that version will do.
void add_runtime_fixes(const Situation& at, Advice& advice) {
  constexpr int kInsufficientDriver = 35;
  if (at.code != kInsufficientDriver || !at.runtime.known() || !at.driver.known()) return;
  const ToolkitRow* row = toolkit_at_most({at.runtime.major, 0});
  if (row != nullptr && row->version.major == at.runtime.major && !row->minor_driver.empty())
    advice.fixes.push_back(
        {FixKind::upgrade_driver,
         fmt::format("Update the driver to {} or newer", row->minor_driver),
         {},
         fmt::format("that is the oldest that CUDA {}.x runs on", at.runtime.major),
         "a GPU that newer drivers have dropped keeps the old one: then take the next way"});
  advice.fixes.push_back({FixKind::reinstall,
                          fmt::format("Use a build of the program for CUDA {}", at.driver.major),
                          {},
                          fmt::format("this driver serves CUDA {} and older", name(at.driver)),
                          ""});
}

}  // namespace kshim::analysis

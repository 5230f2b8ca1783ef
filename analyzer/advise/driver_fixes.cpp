// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/driver_fixes.h"

#include <fmt/core.h>

#include "analyzer/advise/build_plan.h"
#include "analyzer/advise/other_ways.h"
#include "analyzer/advise/rebuild.h"
#include "analyzer/advise/source_build.h"
#include "analyzer/advise/wheel_fixes.h"
#include "analyzer/core/codes.h"
#include "analyzer/data/knowledge.h"
#include "kshim/image/decompress.h"

namespace kshim::analysis {
namespace {

using image::Version;

std::string name(Version version) { return std::string(image::to_name(version).view()); }

// The PTX version that did not fit: what was said, else the oldest of the images.
Version refused_isa(const AdviceInput& at) {
  if (at.ptx.known()) return at.ptx;
  Version isa;
  for (const image::Candidate& image : at.have) {
    if (image.kind == image::ImageKind::ptx && (!isa.known() || image.isa < isa) && image.isa.known())
      isa = image.isa;
  }
  return isa;
}

// What the driver has to be for at least: of the PTX itself, else of the toolkit that made it, else the next
// after its own.
Version needed_cuda(const AdviceInput& at, Version isa) {
  if (isa.known()) return image::cuda_of_ptx_isa(isa);
  // Bytecode of Tile IR is numbered as the CUDA that reads it.
  for (const image::Candidate& image : at.have) {
    if (image.kind == image::ImageKind::tileir) return image.isa;
  }
  if (!at.have.empty()) return {};
  const ToolkitRow* reads = toolkit_that_driver_reads(at);
  if (at.toolkit.known() && (reads == nullptr || reads->isa < image::ptx_isa_of_cuda(at.toolkit)))
    return at.toolkit;
  if (reads == nullptr) return {};
  for (const ToolkitRow& row : toolkits()) {
    if (reads->isa < row.isa) return row.version;
  }
  return {};
}

// A driver update helps only as far as the GPU is still supported.
void add_driver_fix(const AdviceInput& at, Advice& advice) {
  const Version isa = refused_isa(at);
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const bool exact = isa.known() || at.toolkit.known();
  Version needed = needed_cuda(at, isa);
  if (needed.known() && last.known() && needed > last) {
    advice.dead_ends.push_back(no_driver_update(
        fmt::format("R{} is the last driver branch for {} GPUs and reads PTX for CUDA {} at most; "
                    "this PTX needs CUDA {}",
                    gpu->last_branch, gpu->family, name(last), name(needed))));
    return;
  }
  // Nor one that does not know the GPU.
  if (gpu != nullptr && needed.known() && needed < gpu->first_toolkit) needed = gpu->first_toolkit;
  Fix fix{FixKind::upgrade_driver, "Update the driver", {}, "a newer driver reads newer PTX", "",
          "update-driver"};
  const ToolkitRow* row = needed.known() ? toolkit_at_most(needed) : nullptr;
  if (row != nullptr && !row->driver.empty()) {
    fix.title = fmt::format("Update the driver to {} or newer", row->driver);
    fix.why =
        exact ? fmt::format("drivers for CUDA {} and newer read PTX {}", name(needed),
                            name(isa.known() ? isa : row->isa))
              : fmt::format("it is the first that reads more than PTX {}; how new the PTX is was not said",
                            name(toolkit_that_driver_reads(at)->isa));
  }
  if (last.known())
    fix.caveat = fmt::format("stay within branch R{}: it is the last one for this GPU", gpu->last_branch);
  advice.fixes.push_back(std::move(fix));
}

// PTX without a file was made at run time, by NVRTC or what is built on it: its version is that of this
// compiler.
void add_older_compiler_fix(const AdviceInput& at, std::vector<Fix>& fixes) {
  const ToolkitRow* row = toolkit_that_driver_reads(at);
  if (row == nullptr || (at.device && !plan_build({}, *at.device, *row, row->version))) return;
  fixes.push_back(
      {FixKind::downgrade,
       fmt::format("Let the program compile with CUDA {} or older", name(row->version)),
       {},
       fmt::format("the NVRTC or libNVVM of that release writes PTX {} at most, which this driver reads",
                   name(row->isa)),
       "",
       "compile-with-older-cuda"});
}

}  // namespace

const ToolkitRow* toolkit_that_driver_reads(const AdviceInput& at) {
  if (at.driver.known()) return toolkit_at_most(at.driver);
  return at.reads.known() ? toolkit_of_isa(at.reads) : nullptr;
}

void add_newer_ptx_fixes(const AdviceInput& at, Advice& advice) {
  const bool at_run_time = at.origin == Origin::memory;
  if (at_run_time && !at.loose) {
    // Whoever compiles for the GPU that is there is not mended by building it for that GPU.
    if (!add_other_ways(at, advice.fixes)) {
      add_older_compiler_fix(at, advice.fixes);
      add_wheel_fix(at, advice.fixes);
    }
  } else {
    if (at_run_time) add_older_compiler_fix(at, advice.fixes);
    if (at.origin == Origin::installed) add_driver_fix(at, advice);
    add_rebuild_fixes(at, advice.fixes);
    const ToolkitRow* row = toolkit_that_driver_reads(at);
    if (!at_run_time && !at.device && row != nullptr && at.origin != Origin::installed)
      advice.fixes.push_back(
          {FixKind::downgrade,
           fmt::format("Build it with CUDA {} or older", name(row->version)),
           {},
           fmt::format("its nvcc writes PTX {} at most, which this driver reads", name(row->isa)),
           "machine code for the GPU beside the PTX spares it the compiling",
           "build-with-older-cuda"});
  }
  if (at.origin != Origin::installed) add_driver_fix(at, advice);
}

// Within a CUDA major version, an older driver reads newer cubins.
void add_newer_driver_fixes(const AdviceInput& at, Advice& advice) {
  const bool newer_cubin = at.newest_cubin.major > at.driver.major;
  const Version needed = newer_cubin ? Version{at.newest_cubin.major, 0} : image::kFirstZstdDriver;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const ToolkitRow* row = toolkit_at_most(needed);
  if (last.known() && needed > last) {
    advice.dead_ends.push_back(no_driver_update(
        fmt::format("R{} is the last driver branch for {} GPUs", gpu->last_branch, gpu->family)));
  } else if (newer_cubin && row != nullptr) {
    advice.fixes.push_back({FixKind::upgrade_driver,
                            row->driver.empty()
                                ? fmt::format("Update the driver to one for CUDA {}", name(needed))
                                : fmt::format("Update the driver to {} or newer", row->driver),
                            {},
                            fmt::format("drivers for CUDA {} and newer read the cubins of CUDA {}.x",
                                        name(needed), needed.major),
                            "",
                            "update-driver"});
  } else {
    advice.fixes.push_back({FixKind::upgrade_driver,
                            "Update the driver to 550.54.14 or newer",
                            {},
                            "drivers for CUDA 12.4 and newer read compressed images",
                            "",
                            "update-driver"});
  }
  if (newer_cubin && at.device) add_rebuild_for_driver(at, advice.fixes);
}

// 35: within a CUDA major version any driver of that version will do; an image of a container names the minor
// version, too.
void add_runtime_fixes(const AdviceInput& at, Advice& advice) {
  if (at.code != kInsufficientDriver || !at.runtime.known()) return;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  const Version last = gpu != nullptr ? last_driver_cuda(*gpu) : Version{};
  const ToolkitRow* row = toolkit_at_most(at.asks_for_cuda ? at.runtime : Version{at.runtime.major, 0});
  const bool beyond = last.known() && (at.asks_for_cuda ? last < at.runtime : last.major < at.runtime.major);
  const std::string_view oldest = row == nullptr || row->version.major != at.runtime.major ? ""
                                  : at.asks_for_cuda                                       ? row->driver
                                                     : row->minor_driver;
  if (add_wheel_for_driver(at, advice.fixes)) {
    // The shortest way: no driver of the machine is touched.
  } else if (beyond && at.device && !at.package.empty()) {
    const std::size_t before = advice.fixes.size();
    add_source_build(at, advice.fixes);
    if (advice.fixes.size() == before) add_wheel_fix(at, advice.fixes);
  }
  if (beyond) {
    advice.dead_ends.push_back(
        no_driver_update(fmt::format("R{} is the last branch for {} GPUs, and serves CUDA {} at most",
                                     gpu->last_branch, gpu->family, name(last))));
  } else if (!oldest.empty()) {
    advice.fixes.push_back(
        {FixKind::upgrade_driver,
         fmt::format("Update the driver to {} or newer", oldest),
         {},
         at.asks_for_cuda
             ? fmt::format("that is the first for CUDA {}, which the image asks for", name(at.runtime))
             : fmt::format("that is the oldest that CUDA {}.x runs on", at.runtime.major),
         at.device ? "" : "a GPU that newer drivers have dropped keeps the old one: then take another way",
         "update-driver"});
  }
  if (!at.driver.known() && at.asks_for_cuda)
    advice.fixes.push_back({FixKind::reinstall,
                            "Use an image for an older CUDA",
                            {"nvidia-smi"},
                            "on the host, it says up to which CUDA the driver goes",
                            "",
                            "use-older-image"});
  if (at.driver.known())
    advice.fixes.push_back({FixKind::reinstall,
                            at.asks_for_cuda
                                ? fmt::format("Use an image for CUDA {} or older", name(at.driver))
                                : fmt::format("Use a build of the program for CUDA {}", at.driver.major),
                            {},
                            fmt::format("this driver serves CUDA {} and older", name(at.driver)),
                            "",
                            "use-older-build"});
}

}  // namespace kshim::analysis

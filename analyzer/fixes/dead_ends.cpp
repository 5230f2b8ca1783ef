// SPDX-License-Identifier: Apache-2.0
#include "analyzer/fixes/dead_ends.h"

#include <fmt/core.h>

#include "analyzer/fixes/releases.h"
#include "analyzer/knowledge/knowledge.h"

namespace kshim::analysis {
namespace {

std::string name(image::Version version) { return std::string(image::to_name(version).view()); }

// Code that is not in the file cannot come from anywhere else.
bool lacks_code(Cause cause) {
  return cause == Cause::no_image_for_arch || cause == Cause::arch_specific_image ||
         cause == Cause::ptx_newer_than_device || cause == Cause::kernel_missing_from_image ||
         cause == Cause::latent_gap;
}

}  // namespace

void add_dead_ends(const Situation& at, Advice& advice) {
  auto& out = advice.dead_ends;
  const bool switched = at.cause == Cause::sass_bypassed || at.cause == Cause::ptx_jit_disabled;
  const bool latent = at.cause == Cause::latent_gap;  // the GPU in question need not be in this machine
  if ((lacks_code(at.cause) || switched) && !latent) {
    const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
    if (gpu != nullptr && at.driver.known() && at.driver < gpu->first_toolkit) {
      // It does not know this GPU: an update is called for, though not enough.
    } else if (gpu != nullptr && gpu->last_branch != 0) {
      out.push_back(
          {"updating the driver", fmt::format("it is not the cause, and R{} is the last branch for {} GPUs",
                                              gpu->last_branch, gpu->family)});
    } else {
      out.push_back({"updating the driver",
                     switched ? "it serves this GPU already, and heeds the same switch"
                              : "it serves this GPU already, and brings no code for your kernels"});
    }
  }
  if (lacks_code(at.cause)) {
    const bool other_kernel = at.cause == Cause::kernel_missing_from_image;
    const ToolkitRow* last = at.device ? last_toolkit_for({*at.device, image::Suffix::none}) : nullptr;
    if (other_kernel && at.asked_by_name) {
      // About the name, not about what was built.
    } else if (is_vendors(at)) {
      // Nobody builds it but NVIDIA.
    } else if (last != nullptr && last != &toolkits().back()) {
      out.push_back({fmt::format("building with a CUDA newer than {}", name(last->version)),
                     "nvcc refuses this architecture since then"});
    } else if (!other_kernel) {
      out.push_back({"installing another CUDA toolkit without rebuilding",
                     "the file keeps the code it was built with"});
    }
    // Where no image is known, none is known not to fit either.
    if (!latent && (other_kernel || !at.have.empty())) {
      out.push_back({"clearing ~/.nv/ComputeCache",
                     other_kernel ? "the kernel is missing in the file, not in the cache"
                                  : "it only holds what was compiled from PTX, and no PTX here fits"});
    }
  }
  if (at.python && lacks_code(at.cause) &&
      (at.torch || at.origin == Origin::python_extension || at.origin == Origin::installed)) {
    out.push_back({"exporting TORCH_CUDA_ARCH_LIST and running again",
                   "it is read when an extension is built, not when it runs"});
  }
  if (at.cause == Cause::ptx_newer_than_driver) {
    out.push_back(
        {"installing an older CUDA runtime beside the program", "the PTX in the file keeps its version"});
  }
  if (switched) {
    out.push_back({"rebuilding with the same architectures", "the file already has what this GPU needs"});
  }
}

}  // namespace kshim::analysis

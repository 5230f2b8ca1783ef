// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/gpu_driver.h"

#include <fmt/core.h>

namespace kshim::analysis {
namespace {

using image::Version;

std::string name(Version version) { return std::string(image::to_name(version).view()); }

// "550.54.15, for CUDA 12.4", and what of it is known.
std::string described(const AdviceInput& at) {
  if (!at.driver.known()) return at.kernel_module;
  const std::string cuda = fmt::format("for CUDA {}", name(at.driver));
  return at.kernel_module.empty() ? cuda : fmt::format("{}, {}", at.kernel_module, cuda);
}

}  // namespace

Serving serving_of(const AdviceInput& at) {
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  return gpu == nullptr ? Serving::unknown : serving_of(*gpu, at.driver, at.kernel_module);
}

void add_gpu_driver_fix(const AdviceInput& at, Serving serving, std::vector<Fix>& fixes) {
  if (serving != Serving::too_old && serving != Serving::too_new) return;
  const GpuRow& gpu = *find_gpu(*at.device);
  if (serving == Serving::too_new) {
    fixes.push_back(
        {FixKind::downgrade,
         fmt::format("Install a driver of branch R{}", gpu.last_branch),
         {},
         fmt::format("it is the last branch for {} GPUs: newer ones do not drive them", gpu.family),
         "only where that is the driver of the machine that this GPU is in",
         "install-driver-branch"});
    return;
  }
  const ToolkitRow* first = find_toolkit(gpu.first_toolkit);
  Fix fix{FixKind::upgrade_driver, "", {}, "no file can run on a GPU that its driver does not know", "",
          "update-driver"};
  fix.title = gpu.tegra ? "Update JetPack, which brings the driver"
              : first != nullptr
                  ? fmt::format("Update the driver to {} or newer", first->driver)
                  : fmt::format("Update the driver to one for CUDA {} or newer", name(gpu.first_toolkit));
  if (first != nullptr) fix.arguments = {{"driver", std::string(first->driver)}};
  if (gpu.last_branch != 0)
    fix.caveat = fmt::format("stay within branch R{}: it is the last one for this GPU", gpu.last_branch);
  fixes.push_back(std::move(fix));
}

AdviceInput with_serving_driver(const AdviceInput& at, Serving serving) {
  AdviceInput out = at;
  if (serving != Serving::too_old && serving != Serving::too_new) return out;
  const GpuRow& gpu = *find_gpu(*at.device);
  out.driver = serving == Serving::too_old ? gpu.first_toolkit : last_driver_cuda(gpu);
  out.kernel_module.clear();
  return out;
}

void add_driver_remark(const AdviceInput& at, Serving serving, std::vector<std::string>& remarks) {
  switch (serving) {
    case Serving::unknown:
      // A GPU that no table knows.
      return;
    case Serving::yes:
      if (at.driver.known()) remarks.push_back(fmt::format("Your driver ({}) is fine.", described(at)));
      return;
    case Serving::too_old:
    case Serving::too_new: {
      const GpuRow& gpu = *find_gpu(*at.device);
      const std::string limit =
          serving == Serving::too_old
              ? fmt::format(
                    "the drivers that came with CUDA {} are the first that know compute capability {}",
                    name(gpu.first_toolkit), image::to_name(gpu.cc).view())
              : fmt::format("R{} is the last branch for {} GPUs", gpu.last_branch, gpu.family);
      remarks.push_back(fmt::format(
          "A driver {}does not drive this GPU: {}. Driver and GPU contradict each other: with this "
          "driver a program sees no such GPU. kshim doctor says what the machine has.",
          at.driver.known() ? fmt::format("for CUDA {} ", name(at.driver))
                            : fmt::format("of version {} ", at.kernel_module),
          limit));
      return;
    }
  }
}

}  // namespace kshim::analysis

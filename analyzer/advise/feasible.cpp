// SPDX-License-Identifier: Apache-2.0
#include "analyzer/advise/fixes.h"
#include "analyzer/advise/wheel_choice.h"
#include "analyzer/core/text.h"

namespace kshim::analysis {

using image::Version;

Version least_source_cuda(const AdviceInput& at) {
  const std::string distribution = wheel_of(at).distribution;
  Version least;
  for (const SourceNeedRow& row : source_needs()) {
    if (row.distribution == distribution && (!least.known() || row.oldest_cuda < least))
      least = row.oldest_cuda;
  }
  return least;
}

Version driver_limit(const AdviceInput& at) {
  // A Jetson whose JetPack has ended: what the log names is of its JetPack.
  const bool jetson = !at.driver.known() && at.device && find_gpu(*at.device) != nullptr &&
                      find_gpu(*at.device)->tegra && !can_ever_run(at.device, toolkits().back().version);
  return jetson ? at.toolkit : at.driver;
}

namespace {

bool is_feasible(const AdviceInput& at, const Fix& fix) {
  if (fix.system == "linux" && platform_of(at).starts_with("windows")) return false;
  if (!fix.cuda.known()) return true;
  const bool of_source = fix.id == "rebuild" && comes_built(at);
  if (of_source && fix.cuda < least_source_cuda(at)) return false;
  const GpuRow* gpu = at.device ? find_gpu(*at.device) : nullptr;
  // A Jetson has the driver of its JetPack, and no other.
  return gpu != nullptr && gpu->tegra ? can_run(at.device, driver_limit(at), fix.cuda)
                                      : can_ever_run(at.device, fix.cuda);
}

}  // namespace

void keep_feasible(const AdviceInput& at, std::vector<Fix>& fixes) {
  std::erase_if(fixes, [&](const Fix& fix) { return !is_feasible(at, fix); });
  for (Fix& fix : fixes) {
    if (can_run(at.device, at.driver, fix.cuda)) continue;
    const ToolkitRow* row = toolkit_at_most(fix.cuda);
    const std::string_view driver = fix.cuda.major >= 11 ? oldest_driver(at, fix.cuda.major)
                                    : row != nullptr     ? row->driver
                                                         : "";
    if (!driver.empty())
      fix.caveat += fmt::format("{}it needs driver {} or newer, and yours is for CUDA {}",
                                fix.caveat.empty() ? "" : "; ", driver_text(at, driver), name(at.driver));
  }
}

}  // namespace kshim::analysis
